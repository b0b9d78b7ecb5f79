// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// What GitHub makes of a page, in the site: links lead to a page, to a package's
// documentation, or to the file in the repository.

import fs from 'node:fs'
import path from 'node:path'
import { addressOf, baseOf, directoryOf, files, module, rewrites, root, titleOf } from './pages.js'

const pages = new Set(files)
const rewritten = new Map(Object.entries(rewrites).map(([file, name]) => [name, file]))

const outside = /^([a-z]+:|#|\/\/)/i

// fileOf returns the file that a link of a page names, from the root.
function fileOf(page, link) {
  const to = link.split('#')[0]
  const file = path.posix.normalize(path.posix.join(baseOf(page), decodeURI(to))).replace(/\/$/, '')
  if (file.startsWith('..') || to.startsWith('/')) throw new Error(`${page}: the link ${link} leaves the repository`)
  return file
}

// resolve returns where a link of a page leads in the site. It fails where nothing is.
function resolve(page, link, tree) {
  const file = fileOf(page, link)
  const fragment = link.includes('#') ? link.slice(link.indexOf('#')) : ''
  if (file === 'README.md') return '/' + fragment
  for (const candidate of [file, `${file}/README.md`]) {
    if (pages.has(candidate)) return addressOf(candidate) + fragment
  }
  const target = fs.statSync(path.join(root, file), { throwIfNoEntry: false })
  if (!target) throw new Error(`${page}: the link ${link} leads nowhere`)
  if (path.posix.basename(file) === 'doc.go') return `https://pkg.go.dev/${module}/${path.posix.dirname(file)}`
  return `https://${module}/${target.isDirectory() ? 'tree' : 'blob'}/${tree}/${file}${fragment}`
}

// asOnGitHub is a plugin of markdown-it.
export function asOnGitHub(md, tree) {
  // GitHub lists the files of a directory below its README.
  md.core.ruler.before('normalize', 'directories', (state) => {
    const page = pageOf(state)
    const list = page && directoryOf(page)
    if (list) state.src += '\n\n' + list.map((file) => `- [${titleOf(file)}](${path.posix.basename(file)})\n`).join('')
  })
  // A page that a text calls by its file's name gets its title.
  md.core.ruler.push('repository_links', (state) => {
    const page = pageOf(state)
    if (!page) return
    for (const { children } of state.tokens) {
      children?.forEach((token, i) => {
        const link = token.attrGet('href')
        if (token.type !== 'link_open' || outside.test(link)) return
        token.attrSet('href', resolve(page, link, tree))
        const text = children[i + 1]
        const file = fileOf(page, link)
        if (pages.has(file) && /^[\w./-]+\.md$/.test(text.content)) text.content = titleOf(file)
      })
    }
  })
  // Braces in code are text, not expressions of Vue.
  md.core.ruler.push('code_as_text', (state) => {
    for (const { children } of state.tokens) {
      for (const token of children ?? []) if (token.type === 'code_inline') token.attrSet('v-pre', '')
    }
  })
  // Indented code looks like fenced code.
  md.core.ruler.push('indented_code', (state) => {
    for (const token of state.tokens) if (token.type === 'code_block') token.type = 'fence'
  })
}

// pageOf returns the page that is parsed; a title has none. VitePress names a
// page by its file here, and there by its name in the site.
function pageOf(state) {
  if (!state.env.path) return undefined
  const name = path.relative(root, state.env.path).replaceAll(path.sep, '/')
  return rewritten.get(name) ?? name
}
