// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Checks the built site: each link, anchor and image that it has of its own leads somewhere.

import fs from 'node:fs'
import path from 'node:path'
import { files, here } from './pages.js'

const dist = path.join(here, 'dist')
const base = process.env.SITE_BASE || '/flyball/'

const built = new Map() // path from dist to the text of a page, undefined for another file
const walk = (dir) => {
  for (const entry of fs.readdirSync(path.join(dist, dir), { withFileTypes: true })) {
    const file = path.posix.join(dir, entry.name)
    if (entry.isDirectory()) walk(file)
    else built.set(file, file.endsWith('.html') ? fs.readFileSync(path.join(dist, file), 'utf8') : undefined)
  }
}
walk('.')

const anchors = new Map()
const anchorsOf = (file) => {
  if (!anchors.has(file)) anchors.set(file, new Set([...built.get(file).matchAll(/\sid="([^"]*)"/g)].map((m) => m[1])))
  return anchors.get(file)
}

const dead = []
let checked = 0
for (const [page, text] of built) {
  if (text === undefined) continue
  const at = new URL(base + page, 'http://site')
  for (const [, attribute, raw] of text.replace(/<script[\s\S]*?<\/script>/g, '').matchAll(/\s(href|src)="([^"]*)"/g)) {
    const link = new URL(raw.replaceAll('&amp;', '&'), at)
    if (link.origin !== at.origin) continue
    checked++
    if (!link.pathname.startsWith(base)) {
      dead.push(`${page}: ${raw} is not below ${base}`)
      continue
    }
    const to = decodeURI(link.pathname.slice(base.length))
    const file = [to, `${to}.html`, `${to}index.html`].find((name) => built.has(name))
    const anchor = decodeURIComponent(link.hash.slice(1))
    if (!file) dead.push(`${page}: ${raw} leads nowhere`)
    else if (anchor && attribute === 'href' && (built.get(file) === undefined || !anchorsOf(file).has(anchor))) {
      dead.push(`${page}: ${raw} names an anchor that ${file} does not have`)
    }
  }
}

const pages = [...built].filter(([, text]) => text !== undefined).length - 1 // without 404.html
if (pages !== files.length) dead.push(`${pages} pages were built, want ${files.length}`)
if (dead.length) {
  console.error([...new Set(dead)].join('\n'))
  process.exit(1)
}
console.log(`checked ${checked} links of ${pages} pages`)
