// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// The pages of the site: which files of the repository they are, their
// addresses and titles, and those that are made from other files.

import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const here = path.dirname(fileURLToPath(import.meta.url))
export const root = path.resolve(here, '../..')
export const module = 'github.com/flyball-dev/flyball'
const generated = 'hack/site/generated'

const read = (file) => fs.readFileSync(path.join(root, file), 'utf8')

const sections = JSON.parse(read('hack/site/sidebar.json')).map((section) => {
  const listed = section.pages.map((page) => page.file)
  const found = !section.directory ? [] : fs.readdirSync(path.join(root, section.directory))
    .filter((name) => name.endsWith('.md') && !name.includes('template'))
    .map((name) => `${section.directory}/${name}`)
    .filter((file) => !listed.includes(file))
    .sort()
  return { ...section, found, pages: [...section.pages, ...found.map((file) => ({ file }))] }
})

// versions lists main and, newest first, the releases that a changelog has: the
// tag of each, and where it is below the site of main.
export function versions(changelog) {
  const releases = [...fs.readFileSync(changelog, 'utf8').matchAll(/^## \[(\d+\.\d+\.\d+[\w.-]*)\]/gm)]
  return [{ name: 'main', place: '' }, ...releases.map(([, number]) => ({ name: `v${number}`, place: `v${number}/` }))]
}

// generate writes the pages that are made from the README and from package comments.
export function generate() {
  fs.mkdirSync(path.join(root, generated), { recursive: true })
  const write = (name, text) => fs.writeFileSync(path.join(root, generated, name), text)
  write('index.md', pictures(home(read('README.md'))))
  write('tour.md', pictures(tour(read('README.md'))))
  const packages = libraryPackages()
  write('concepts.md', concepts(packages))
  write('packages.md', reference(packages))
}

// pictures makes the paths of the README's pictures relative to the generated pages.
function pictures(text) {
  return text.replaceAll(/(!\[[^\]]*\]\()(?!https?:)/g, `$1${path.posix.relative(generated, '.')}/`)
}

// files lists the files that are pages.
export const files = [`${generated}/index.md`, ...sections.flatMap((section) => section.pages.map((page) => page.file))]

// directoryOf returns the files of a page's directory where the sidebar lists them all.
export function directoryOf(file) {
  return sections.find((section) => section.directory && `${section.directory}/README.md` === file)?.found
}

// addressOf returns where a page is: a path without an extension.
export function addressOf(file) {
  return '/' + rewritten(file).replace(/\.md$/, '').replace(/(^|\/)index$/, '$1')
}

function rewritten(file) {
  return file.replace(`${generated}/`, '').replace(/^docs\//, '').replace(/README\.md$/, 'index.md').toLowerCase()
}

// rewrites maps each file to its name in the site.
export const rewrites = Object.fromEntries(files.map((file) => [file, rewritten(file)]))

for (const [i, name] of Object.values(rewrites).entries()) {
  const first = Object.values(rewrites).indexOf(name)
  if (first !== i) throw new Error(`${files[first]} and ${files[i]} are both ${name} in the site`)
}

// sourceOf returns the file that a page can be edited in.
export function sourceOf(file) {
  return !file.startsWith(generated) ? file : /concepts|packages/.test(file) ? 'doc.go' : 'README.md'
}

// baseOf returns the directory that a page's relative links start from.
export function baseOf(file) {
  return file.startsWith(generated) ? '.' : path.posix.dirname(file)
}

export function sidebar() {
  return sections.map((section) => ({
    text: section.text,
    collapsed: section.collapsed ?? false,
    items: section.pages.map((page) => ({ text: page.text ?? titleOf(page.file), link: addressOf(page.file) })),
  }))
}

export function titleOf(file) {
  const title = /^# (.+)$/m.exec(read(file))
  if (!title) throw new Error(`${file} has no title`)
  return title[1].replaceAll('`', '')
}

// others lists the Markdown files of the repository that are no pages.
export function others() {
  const known = new Set(files)
  const found = []
  const walk = (dir) => {
    for (const entry of fs.readdirSync(path.join(root, dir), { withFileTypes: true })) {
      const file = path.posix.join(dir, entry.name)
      if (entry.name.startsWith('.') || entry.name === 'node_modules') continue
      if (entry.isDirectory()) walk(file)
      else if (entry.name.endsWith('.md') && !known.has(file)) found.push(file)
    }
  }
  walk('.')
  return found
}

// home makes the home page of the README's part before its first heading: a
// sentence, a table of pains, and the rest.
function home(readme) {
  const intro = readme.split(/^## /m)[0].replace(/^# .*$/m, '').trim()
  const [lead, pains, ...rest] = intro.split(/\n{2,}/)
  const rows = pains.split('\n').slice(2).map((row) => row.split('|').slice(1, -1).map((cell) => cell.trim()))
  const [name, text] = plain(lead).split(/, named after/)
  if (!text || rows.length < 3 || rows.some((row) => row.length !== 2)) {
    throw new Error('README.md does not begin with a sentence about the name and a table of pains with two columns')
  }
  const features = rows.map(([pain, answer]) => {
    const parts = /^\*\*(.+?)\.?\*\*\s*(.+)$/.exec(answer)
    if (!parts) throw new Error(`README.md: an answer does not begin with bold words: ${answer}`)
    return { title: parts[1], details: `<em>${html(plain(pain))}</em> ${html(plain(parts[2]))}` }
  })
  const front = {
    layout: 'home',
    title: 'Flyball',
    titleTemplate: 'Kubernetes controllers in Go',
    hero: {
      name: 'Flyball',
      text: name.replace(/^an? /i, '').replace(/^./, (c) => c.toUpperCase()),
      image: { src: '/logo.svg', alt: 'A flyball governor' },
      tagline: `Named after${text}`,
      actions: [
        { theme: 'brand', text: 'Start', link: addressOf('docs/start.md') },
        { theme: 'alt', text: 'Migrate an operator', link: addressOf('docs/migration.md') },
        { theme: 'alt', text: 'Test with faults', link: addressOf('docs/testing.md') },
      ],
    },
    features,
  }
  return `---\n${JSON.stringify(front)}\n---\n\n<div class="home-facts">\n\n${rest.join('\n\n')}\n\n</div>\n`
}

// tour makes a page of the README's parts about code.
function tour(readme) {
  const parts = readme.split(/^(?=## )/m).slice(1)
  const documentation = parts.findIndex((part) => part.startsWith('## Documentation'))
  if (documentation < 2) throw new Error('README.md has no heading Documentation after others')
  return `# A look around\n\nAt the end of this page you have seen an operator run and know the shape of its code.\n\n` +
    parts.filter((_, i) => i !== documentation).join('')
}

// libraryPackages returns the packages that programs import: path, first
// sentence and drawing of the package comment.
function libraryPackages() {
  const found = []
  const walk = (dir) => {
    const entries = fs.readdirSync(path.join(root, dir), { withFileTypes: true })
    for (const entry of entries) {
      if (entry.isFile() && entry.name.endsWith('.go') && !entry.name.endsWith('_test.go')) {
        const comment = packageComment(read(path.posix.join(dir, entry.name)))
        if (comment) found.push({ path: dir, ...comment })
      }
    }
    for (const entry of entries) {
      const barred = /^\.|^(internal|testdata|node_modules|docs|examples|hack|integration|zoo|recorded)$/
      if (entry.isDirectory() && !barred.test(entry.name)) walk(path.posix.join(dir, entry.name))
    }
  }
  walk('.')
  return found
}

function packageComment(text) {
  const clause = /^((?:\/\/.*\n)+)package (\w+)/m.exec(text)
  if (!clause || clause[2] === 'main') return undefined
  const lines = clause[1].split('\n').map((line) => line.replace(/^\/\/ ?/, ''))
  const first = lines.slice(0, lines.indexOf('')).join(' ')
  const sentence = /^(.+?\.)(\s|$)/.exec(first)
  if (!sentence) throw new Error(`no first sentence: ${first}`)
  const blocks = []
  for (const line of lines) {
    if (/^\t/.test(line)) (blocks.open ??= []).push(line.slice(1))
    else if (line.trim() === '' && blocks.open) blocks.open.push('')
    else if (blocks.open) { blocks.push(blocks.open.join('\n').trimEnd()); blocks.open = undefined }
  }
  if (blocks.open) blocks.push(blocks.open.join('\n').trimEnd())
  // Code and a drawing that only an empty line parts are one block of a comment.
  const drawing = blocks.filter((block) => /[─│▼▶]/.test(block)).map(drawingOf)[0]
  return { name: clause[2], summary: sentence[1].slice(0, -1), drawing, promises: lines.includes('# Promises') }
}

function drawingOf(block) {
  const parts = block.split(/\n{2,}/)
  const first = parts.findIndex((part) => /[─│▼▶]/.test(part))
  const last = parts.findLastIndex((part) => /[─│▼▶]/.test(part))
  return parts.slice(first, last + 1).join('\n\n')
}

const importPath = (pkg) => path.posix.join(module, pkg.path)
const documentation = (pkg) => `https://pkg.go.dev/${importPath(pkg)}`

// concepts shows the drawings of package comments, those of the path of an object first.
function concepts(packages) {
  const order = ['.', 'informer', 'source', 'workqueue', 'reconcile', 'client', 'webhook', 'manager']
  const rank = (pkg) => (order.indexOf(pkg.path) + order.length + 1) % (order.length + 1)
  const drawn = packages.filter((pkg) => pkg.drawing).sort((a, b) => rank(a) - rank(b))
  if (drawn.length < order.length - 1) throw new Error(`only ${drawn.length} package comments have a drawing`)
  let text = '# The packages in drawings\n\nAt the end of this page you know which package does what with an object, and where to read its promises.\n'
  for (const pkg of drawn) {
    const title = pkg.path === '.' ? 'All together' : pkg.path
    text += `\n## ${title}\n\n${pkg.path === '.' ? 'The path of an object' : sentence(pkg)}.\n\n\`\`\`\n${pkg.drawing}\n\`\`\`\n\n`
    text += `[Documentation](${documentation(pkg)})` + (pkg.promises ? ` and [promises](${documentation(pkg)}#hdr-Promises)` : '') + '\n'
  }
  return text
}

function reference(packages) {
  return '# Packages\n\nWhat each package is for. The names lead to its documentation.\n\n| Package | |\n|---|---|\n' +
    packages.filter((pkg) => pkg.path !== '.').map((pkg) => `| [\`${pkg.path}\`](${documentation(pkg)}) | ${sentence(pkg)} |\n`).join('')
}

// sentence is what a package comment says of the package, without its name.
function sentence(pkg) {
  return pkg.summary.replace(/^Package \w+ /, '').replace(/^./, (c) => c.toUpperCase())
    .replaceAll('|', '\\|').replace(/\[([\w/.]+)\]/g, '`$1`').replace(/[<{]/g, '\\$&')
}

const plain = (text) => text.replace(/\[([^\]]+)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '').replace(/\s+/g, ' ')
const html = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
