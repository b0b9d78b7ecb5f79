// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

import path from 'node:path'
import { defineConfig } from 'vitepress'
import { asOnGitHub } from '../markdown.js'
import { generate, here, module, others, rewrites, root, sidebar, sourceOf, versions } from '../pages.js'

const address = 'https://flyball-dev.github.io/flyball/'
const base = process.env.SITE_BASE || '/flyball/'
const version = process.env.SITE_VERSION || 'main'
const changelog = process.env.SITE_CHANGELOG || path.join(root, 'CHANGELOG.md')

generate()

// anchorOf returns the anchor that GitHub makes for a heading.
const anchorOf = (title) => title.trim().toLowerCase().replace(/[^\p{L}\p{N}\-_ ]/gu, '').replaceAll(' ', '-')

export default defineConfig({
  title: 'Flyball',
  description: 'A framework for Kubernetes controllers in Go',
  lang: 'en',
  base,
  srcDir: root,
  srcExclude: ['**/node_modules/**', ...others()],
  outDir: path.join(here, 'dist'),
  rewrites,
  cleanUrls: true,
  head: [['link', { rel: 'icon', href: `${base}logo.svg` }]],
  markdown: {
    anchor: { slugify: anchorOf },
    toc: { slugify: anchorOf },
    attrs: { disable: true },
    config: (md) => md.use(asOnGitHub, version),
  },
  vite: {
    publicDir: path.join(here, 'public'),
    plugins: [{
      name: 'modules-of-pages',
      // Pages are above this directory, and the modules that they are compiled to need are in it.
      enforce: 'pre',
      resolveId(id) {
        return /^vue(\/|$)/.test(id) ? this.resolve(id, path.join(here, 'pages.js'), { skipSelf: true }) : undefined
      },
    }],
    build: { chunkSizeWarningLimit: 4096 }, // the search index
  },
  themeConfig: {
    logo: '/logo.svg',
    search: {
      provider: 'local',
      options: {
        miniSearch: {
          // How it is comes before why and since when.
          searchOptions: { boostDocument: (id) => (/\/adr\/|\/changelog/.test(id) ? 0.3 : 1) },
        },
      },
    },
    outline: [2, 3],
    sidebar: sidebar(),
    nav: [
      { text: 'Start', link: '/start' },
      { text: 'Migration', link: '/migration' },
      { text: 'Packages', link: '/packages' },
      { text: 'Performance', link: '/performance' },
      {
        text: version,
        items: versions(changelog).map(({ name, place }) => ({ text: name, link: address + place, target: '_self', noIcon: true })),
      },
    ],
    socialLinks: [{ icon: 'github', link: `https://${module}` }],
    editLink: {
      text: 'Edit this page on GitHub',
      pattern: `https://${module}/edit/main/:path`,
    },
    footer: { message: 'Apache License 2.0' },
  },
  transformPageData(page) {
    if (sourceOf(page.filePath) !== page.filePath) page.frontmatter.editLink = false
  },
})
