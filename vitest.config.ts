import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url))

const include = ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts']
const exclude = ['**/node_modules/**']
/** Tests that keep the processors busy while they measure time or memory: nothing else runs beside them. */
const alone = [
  'packages/limiter/src/decision/allocations.test.ts',
  'packages/limiter/src/stores/memory/memory-store.test.ts',
  'test/{accuracy,chaos}/*.test.ts',
  'test/gateway/hostile/large-transfers.test.ts',
]
/** Tests that measure time and mostly wait: two of them run side by side, and nothing else. */
const timed = [
  'packages/limiter/src/pacing/shared-pace*.test.ts',
  'packages/limiter/src/tests/{flapping,lost-counts,outages}.test.ts',
  'packages/limiter/src/stores/failover/{deadline,failover-store,late-answers}.test.ts',
  'packages/limiter/src/stores/redis/connection/silence.test.ts',
  'test/gateway/hostile/slow-callers.test.ts',
  'test/gateway/http2/hostile.test.ts',
]
/** In the text of tests that start processes or servers. */
const startsMore = /child_process|worker_threads|\/(fakes|servers|helpers)\/|listen\(|createLimiter/
/** In the text of tests that need modules of their own. */
const ownModules = /vi\.(mock|doMock|resetModules|stub|spyOn|useFakeTimers)|[wW]arn|process\.(env|on|emit|exit)/
const testsOfPackages = ['limiter', 'gateway', 'dashboard'].flatMap(name => {
  const folder = `packages/${name}/src`
  const names = readdirSync(source(folder), { recursive: true, encoding: 'utf8' })
  return names.filter(file => file.endsWith('.test.ts')).map(file => `${folder}/${file}`)
})
const textOf = (file: string) => readFileSync(source(file), 'utf8')
/** Tests of functions and classes. */
const pure = testsOfPackages.filter(
  file => !startsMore.test(textOf(file)) && !/vi\.(mock|doMock|resetModules|stub)|[wW]arning/.test(textOf(file)),
)
/** Tests of servers in the process of the test: files of a worker share the modules, which take a second to import. */
const shared = [
  ...testsOfPackages.filter(file => startsMore.test(textOf(file)) && !ownModules.test(textOf(file))),
  'test/behaviors/*.test.ts',
  'test/gateway/{gateway,forms}.test.ts',
  'test/gateway/{hostile,http1,http2,routing,upstreams}/*.test.ts',
  'test/gateway/telemetry/access-log.test.ts',
]
const measuring = [...alone, ...timed]

export default defineConfig({
  resolve: {
    // tests run on the sources, so that a stale build can never pass or fail them
    alias: [
      { find: /^@test\/(.*)$/, replacement: `${source('test/helpers/')}$1.ts` },
      { find: /^diana-limiter$/, replacement: source('packages/limiter/src/index.ts') },
      {
        find: /^diana-limiter\/(express|fastify|http|koa|hono|nest)$/,
        replacement: `${source('packages/limiter/src/filters/')}$1.ts`,
      },
      { find: /^diana-gateway$/, replacement: source('packages/gateway/src/gateway.ts') },
      { find: /^diana-limiter\/(schema|gateway|counting)$/, replacement: `${source('packages/limiter/src/')}$1.ts` },
      {
        find: /^diana-limiter\/(opentelemetry|prom-client)$/,
        replacement: `${source('packages/limiter/src/metrics/')}$1.ts`,
      },
      { find: /^diana-limiter\/filter$/, replacement: source('packages/limiter/src/filters/custom.ts') },
      { find: /^diana-limiter\/store$/, replacement: source('packages/limiter/src/stores/custom.ts') },
      {
        find: /^diana-limiter\/(admin|decorators|testing)$/,
        replacement: `${source('packages/limiter/src/')}$1/index.ts`,
      },
    ],
  },
  test: {
    // long enough for a machine that has other work
    testTimeout: 60_000,
    // a test that fails in CI is run once more, and its line in the log then says (retry x1)
    retry: process.env.CI ? 1 : 0,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 10_000, interval: 10 } },
    coverage: {
      include: ['packages/{limiter,gateway}/src/**/*.ts'],
      exclude: ['**/*.test.ts', '**/{fakes,servers,testing}/**'],
      reporter: ['text', 'json-summary'],
    },
    projects: [
      {
        extends: true,
        test: { name: 'pure', include: pure, exclude: [...exclude, ...measuring], isolate: false, maxWorkers: 2 },
      },
      {
        extends: true,
        // most of these wait for servers and timers, so more files than processors run side by side
        test: {
          ...{ name: 'together', include, exclude: [...exclude, ...pure, ...shared, ...measuring], maxWorkers: 4 },
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          ...{ name: 'shared', include: shared, exclude: [...exclude, ...measuring], isolate: false, maxWorkers: 4 },
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: 'timed', include: timed, maxWorkers: 2, sequence: { groupOrder: 2 } },
      },
      {
        extends: true,
        test: { name: 'alone', include: alone, maxWorkers: 1, sequence: { groupOrder: 3 } },
      },
    ],
  },
})
