import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { buildPackages } from './scripts/build/build-packages.mjs'
import { alone, pure, SharedLast, shared, timed } from './test/groups.ts'

// programs are started as they are published, and a stale build must never pass or fail a test
await buildPackages()

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const others = ['**/node_modules/**', ...alone, ...timed]

/** The sources of a package's entries, so that a stale build can never pass or fail a test. */
function entriesOf(folder: string) {
  const { name, exports } = JSON.parse(readFileSync(path(`${folder}/package.json`), 'utf8')) as {
    name: string
    exports: Record<string, string>
  }
  return Object.entries(exports)
    .filter(([, file]) => file.startsWith('./dist/'))
    .map(([entry, file]) => ({
      find: new RegExp(`^${name}${entry.slice(1)}$`),
      replacement: path(`${folder}/${file.replace('./dist/', 'src/').replace(/\.js$/, '.ts')}`),
    }))
}

/** A group of tests; groups with a higher order begin later, when the others have ended. */
const group = (name: string, groupOrder: number, maxWorkers: number, files: object) => ({
  extends: true as const,
  test: { name, maxWorkers, sequence: { groupOrder }, ...files },
})

export default defineConfig({
  resolve: {
    alias: [
      { find: /^@test\/(.*)$/, replacement: `${path('test/helpers/')}$1.ts` },
      ...entriesOf('packages/limiter'),
      ...entriesOf('packages/gateway'),
    ],
  },
  test: {
    // long enough for a machine that has other work
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // a test that fails in CI is run once more, and its line in the log then says (retry x1)
    retry: process.env.CI ? 1 : 0,
    sequence: { sequencer: SharedLast },
    expect: { poll: { timeout: 10_000, interval: 10 } },
    coverage: {
      include: ['packages/{limiter,gateway}/src/**/*.ts'],
      exclude: ['**/*.test.ts', '**/testing/**'],
      reporter: ['text', 'json-summary'],
    },
    // most tests of servers wait for them and for timers, so more files than processors run side by side
    projects: [
      group('pure', 0, 2, { include: pure, exclude: others, isolate: false }),
      group('together', 1, 4, {
        include: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts'],
        exclude: [...others, ...pure, ...shared],
      }),
      group('shared', 1, 4, { include: shared, exclude: others, isolate: false }),
      group('timed', 2, 5, { include: timed }),
      group('alone', 3, 1, { include: alone }),
    ],
  },
})
