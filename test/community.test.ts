import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

// The pages about how people work together name files that exist, and are found from the README.

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const pages = ['CODE_OF_CONDUCT.md', 'GOVERNANCE.md', 'MAINTAINERS.md', 'ROADMAP.md', 'SUPPORT.md']

/** The pages and anchors that a page links to in this repository. */
function links(page: string): { path: string; anchor: string | undefined }[] {
  return [...read(page).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)].map(([, path, anchor]) => ({
    path: join(page, '..', path === '' ? page : path!),
    anchor,
  }))
}

const anchors = (page: string): string[] =>
  [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )

describe.each(pages)('%s', page => {
  it('the page links to pages and sections that exist', () => {
    const broken = links(page).filter(
      ({ path, anchor }) => !existsSync(join(root, path)) || (anchor !== undefined && !anchors(path).includes(anchor)),
    )
    expect(broken).toEqual([])
  })

  it('the READMEs of both languages link to the page', () => {
    for (const readme of ['README.md', 'README.zh-CN.md']) expect(links(readme).map(link => link.path)).toContain(page)
  })

  it('the page names no number of an issue', () => {
    expect(read(page)).not.toMatch(/#\d/)
  })
})

describe('docs/good-first-changes.md', () => {
  const changes = read('docs/good-first-changes.md').split(/^## /m).slice(1)

  it('the page has five changes, each with a command that shows that it is open, its files, and its end', () => {
    expect(changes.length).toBe(5)
    for (const change of changes) expect(change).toMatch(/```sh\n.+\n```\n\n- Files: [\s\S]+\n- Done when /)
  })

  it('the files that the page names exist', () => {
    const files = changes.flatMap(change =>
      [...change.matchAll(/`([\w./-]+\/[\w./-]+|[\w.-]+\.md)`/g)].map(([, name]) => name!),
    )
    expect(files.length).toBeGreaterThan(10)
    const isMissing = (name: string): boolean =>
      !existsSync(join(root, name)) && !existsSync(join(root, 'packages/limiter/src', name))
    expect([...new Set(files)].filter(isMissing)).toEqual([])
  })
})
