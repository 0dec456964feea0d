import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const testFile = /\b(?:test|packages)\/[\w/.-]+\.test\.ts\b/g

/** The scripts of package.json, and the programs that they start. */
function commands(): string[] {
  const programs = ['test', 'scripts', 'bench'].flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(file => file.endsWith('.mjs') && !file.includes('node_modules'))
      .map(file => join(folder, file)),
  )
  return ['package.json', ...programs]
}

test('every test file that a command runs by its name exists', () => {
  const named = commands().flatMap(file => {
    const files = readFileSync(join(root, file), 'utf8').match(testFile) ?? []
    return files.map(testFile => ({ file, testFile }))
  })
  expect(named.length).toBeGreaterThan(0)
  expect(named.filter(({ testFile }) => !existsSync(join(root, testFile)))).toEqual([])
})

test('every file that a program imports or starts by its relative path exists', () => {
  // not in texts that a program writes
  const relative = /^[^`"\n]*?(?:from |import\(|import )'(\.[^']+)'|new URL\('([\w./-]+)', import\.meta\.url\)/gm
  const named = commands()
    .filter(file => file.endsWith('.mjs'))
    .flatMap(file => {
      const paths = [...readFileSync(join(root, file), 'utf8').matchAll(relative)]
      return paths.map(([, imported, started]) => ({ file, path: join(dirname(file), (imported ?? started)!) }))
    })
    // files that the build makes
    .filter(({ path }) => !/(?:^|\/)dist(?:\/|$)|\/generated\.ts$/.test(path))
  expect(named.length).toBeGreaterThan(100)
  expect(named.filter(({ path }) => !existsSync(join(root, path)))).toEqual([])
})
