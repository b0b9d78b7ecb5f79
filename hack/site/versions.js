// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Builds the site of this tree, and below it that of each released version,
// from its tag and with the menu of this tree.

import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { here, root, versions } from './pages.js'

const changelog = path.join(root, 'CHANGELOG.md')
const base = process.env.SITE_BASE || '/flyball/'
const run = (cwd, env, name, ...args) =>
  execFileSync(name, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'inherit', 'inherit'] })

run(here, {}, 'npm', 'run', '--silent', 'build')
for (const { name, place } of versions(changelog)) {
  if (!place) continue // this tree
  const tree = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'flyball-site-')), name)
  run(root, {}, 'git', 'worktree', 'add', '--detach', tree, name)
  try {
    run(tree, { SITE_BASE: base + place, SITE_VERSION: name, SITE_CHANGELOG: changelog }, 'make', 'site')
    fs.cpSync(path.join(tree, 'hack/site/dist'), path.join(here, 'dist', place), { recursive: true })
  } finally {
    run(root, {}, 'git', 'worktree', 'remove', '--force', tree)
    fs.rmdirSync(path.dirname(tree))
  }
}
