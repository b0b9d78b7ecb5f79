// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Serves the built site on loopback.

import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { here } from './pages.js'

const dist = path.join(here, 'dist')
const base = process.env.SITE_BASE || '/flyball/'
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.woff2': 'font/woff2' }

const server = http.createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://site')
  if (!pathname.startsWith(base)) return response.writeHead(302, { location: base }).end()
  const to = path.posix.normalize('/' + decodeURIComponent(pathname.slice(base.length)))
  const file = [to, `${to}.html`, `${to}/index.html`].map((name) => path.join(dist, name))
    .find((name) => fs.statSync(name, { throwIfNoEntry: false })?.isFile())
  const type = types[path.extname(file ?? '.html')] ?? 'application/octet-stream'
  response.writeHead(file ? 200 : 404, { 'content-type': type })
  fs.createReadStream(file ?? path.join(dist, '404.html')).pipe(response)
})
server.listen(Number(process.env.PORT || 4173), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}${base}`)
})
