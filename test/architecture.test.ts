import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Files and folders that import nothing above them: every folder may import them. */
const bottom = ['call', 'errors', 'common', 'http']

/** Which other folders a folder may import, besides the bottom; a folder without a list may import all. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  algorithms: [],
  dimensions: [],
  rules: ['algorithms', 'dimensions'],
  stores: ['algorithms'],
  sources: ['rules'],
  stats: ['algorithms', 'dimensions', 'rules', 'verdict', 'decision'],
  metrics: ['admin', 'limiter', 'limiter-status', 'stats', 'verdict'],
  filters: ['limiter', 'decision', 'verdict', 'rules', 'decorators'],
}

function sourceFiles(folder: string): string[] {
  return readdirSync(folder).flatMap(name => {
    const path = join(folder, name)
    if (statSync(path).isDirectory()) return ['fakes', 'servers'].includes(name) ? [] : sourceFiles(path)
    return name.endsWith('.ts') && !name.endsWith('.test.ts') ? [path] : []
  })
}

function importsOf(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(/^(?:import|export) [^'"]*from '([^']+)'/gm)].map(match => match[1]!)
}

/** The room of a file: its folder at the top of src, or its own name there. */
function roomOf(source: string, file: string): string {
  return relative(source, file).split('/')[0]!.replace(/\.ts$/, '')
}

describe('the arrows of the house', () => {
  const source = join(root, 'packages/limiter/src')
  const arrows = sourceFiles(source).flatMap(file =>
    importsOf(file)
      .filter(target => target.startsWith('.'))
      .map(target => ({ file, from: roomOf(source, file), to: roomOf(source, resolve(dirname(file), target)) })),
  )

  it('are many enough for this test to mean something', () => {
    expect(arrows.length).toBeGreaterThan(50)
  })

  it.each(Object.keys(mayImport))('%s imports nothing upward', room => {
    const wrong = arrows.filter(
      ({ from, to }) => from === room && to !== room && ![...bottom, ...mayImport[room]!].includes(to),
    )
    expect(wrong.map(({ file, to }) => `${relative(root, file)} → ${to}`)).toEqual([])
  })

  it.each(bottom)('%s at the bottom imports no room', room => {
    const wrong = arrows.filter(({ from, to }) => from === room && to !== room && !bottom.includes(to))
    expect(wrong.map(({ file, to }) => `${relative(root, file)} → ${to}`)).toEqual([])
  })

  it('imports never run in a circle', () => {
    const graph = new Map<string, string[]>()
    for (const file of sourceFiles(source)) {
      const targets = importsOf(file).filter(target => target.startsWith('.'))
      graph.set(
        file,
        targets.map(target => resolve(dirname(file), target)),
      )
    }
    const done = new Set<string>()
    const visit = (file: string, path: readonly string[]): void => {
      expect(path, `circle: ${[...path, file].map(part => relative(root, part)).join(' → ')}`).not.toContain(file)
      if (done.has(file)) return
      for (const target of graph.get(file) ?? []) visit(target, [...path, file])
      done.add(file)
    }
    for (const file of graph.keys()) visit(file, [])
  })

  it('the gateway knows the limiter by its published faces only', () => {
    const gateway = join(root, 'packages/gateway/src')
    const faces = Object.keys(
      (JSON.parse(readFileSync(join(root, 'packages/limiter/package.json'), 'utf8')) as { exports: object }).exports,
    ).map(face => face.replace('.', 'diana-limiter'))
    const used = sourceFiles(gateway)
      .flatMap(importsOf)
      .filter(target => target.startsWith('diana-limiter'))
    expect(used.length).toBeGreaterThan(0)
    expect(used.filter(target => !faces.includes(target))).toEqual([])
  })

  it('frameworks and Redis clients are known to the library as types only', () => {
    const atRunTime = sourceFiles(source).flatMap(file =>
      [...readFileSync(file, 'utf8').matchAll(/^import (?!type )[^'"]*from '([^'.][^']*)'/gm)].map(match => match[1]!),
    )
    const allowed = ['yaml', 'zod', 'ipaddr.js']
    expect([...new Set(atRunTime)].filter(name => !name.startsWith('node:') && !allowed.includes(name))).toEqual([])
  })
})
