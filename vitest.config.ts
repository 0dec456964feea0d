import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer } from 'vitest/node'
import { writeLua } from './scripts/write-lua.mjs'

writeLua()

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
/** Tests that measure time and mostly wait: five of them run side by side, and nothing else. */
const timed = [
  'packages/limiter/src/pacing/shared-pace*.test.ts',
  'test/limiter/{flapping,lost-counts,outages}.test.ts',
  'packages/limiter/src/reload/vanished-file.test.ts',
  'packages/limiter/src/stores/failover/{deadline,failover-store,late-answers}.test.ts',
  'packages/limiter/src/stores/redis/connection/silence.test.ts',
  'test/gateway/hostile/slow-callers.test.ts',
  'test/gateway/http2/hostile.test.ts',
]
/** In the text of tests that start processes or servers. */
const startsMore = /child_process|worker_threads|\/helpers\/|@test\/(?!random-runs|cpu-time)|listen\(|createLimiter/
/** In the text of tests that need modules of their own, such as those of warnings that are printed once. */
const ownModules =
  /vi\.(mock|doMock|resetModules|stubGlobal)|(on|off|once)\(\w*,? ?'warning'|emitWarning|process\.(emit|exit)\b|syncBuiltin|inspector|config-center/
/** In the text of tests that stop the timers, which servers of other files may still use. */
const ownTimers = /vi\.useFakeTimers/
const testsIn = (folder: string) => {
  const names = readdirSync(source(folder), { recursive: true, encoding: 'utf8' })
  return names.filter(file => file.endsWith('.test.ts')).map(file => `${folder}/${file}`)
}
const testsOfPackages = ['limiter', 'gateway', 'dashboard'].flatMap(name => testsIn(`packages/${name}/src`))
const textOf = (file: string) => readFileSync(source(file), 'utf8')
/** Tests of functions and classes. */
const pure = testsOfPackages.filter(file => !startsMore.test(textOf(file)) && !ownModules.test(textOf(file)))
/** Tests of servers and programs: files of a worker share the modules, which take a second to import. */
const shared = [...testsOfPackages.filter(file => startsMore.test(textOf(file))), ...testsIn('test')].filter(
  file => !ownModules.test(textOf(file)) && !ownTimers.test(textOf(file)),
)
const measuring = [...alone, ...timed]

/** The longest of those that run side by side begin first, so that none of them is left alone at the end. */
const longest = [
  ...['gateway/lifecycle/ending', 'gateway/lifecycle/workers', 'gateway/admin', 'browser/dashboard', 'fuzz/fuzz'],
  ...[
    'gateway/lifecycle/takeover',
    'browser/accessibility-and-size',
    'browser/stores-and-config-centers',
    'gateway/lifecycle/live-rules',
    'restarts/restarts',
    'consumers',
    'packages',
    '../packages/limiter/src/filters/filters',
    '../packages/limiter/src/stores/failover/fleet-scenes',
    'limiter/start',
    'cli',
    'simulate/overload/overload',
    'gateway/upstreams/upstreams',
    'clients/clients',
    'behaviors/behaviors',
    'browser/rule-form',
    'gateway/telemetry/telemetry-process',
    'gateway/http2/services',
    'browser/time-ranges',
    'browser/operator',
    'gateway/lifecycle/admin-state',
    'limiter/redis/spread',
  ],
].map(name => source(`test/${name}.test.ts`))

/**
 * Files with modules of their own first, then the longest. A worker of `shared` goes on with the next file of the queue only if that
 * is one of `shared`, too; otherwise it ends, and the next one imports all modules again.
 */
class LongestFirst extends BaseSequencer {
  override async sort(files: Parameters<BaseSequencer['sort']>[0]): Promise<typeof files> {
    const place = ({ moduleId, project }: (typeof files)[number]) => {
      const at = longest.indexOf(moduleId)
      return (project.name === 'shared' ? longest.length + 1 : 0) + (at < 0 ? longest.length : at)
    }
    return (await super.sort(files)).toSorted((one, two) => place(one) - place(two))
  }
}

export default defineConfig({
  resolve: {
    // tests run on the sources, so that a stale build can never pass or fail them
    alias: [
      { find: /^@test\/(.*)$/, replacement: `${source('test/helpers/')}$1.ts` },
      { find: /^diana-limiter$/, replacement: source('packages/limiter/src/index.ts') },
      {
        find: /^diana-limiter\/(express|fastify|fetch|http|koa|hono|nest)$/,
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
    sequence: { sequencer: LongestFirst },
    expect: { poll: { timeout: 10_000, interval: 10 } },
    coverage: {
      include: ['packages/{limiter,gateway}/src/**/*.ts'],
      exclude: ['**/*.test.ts', '**/testing/**'],
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
        test: { name: 'timed', include: timed, maxWorkers: 5, sequence: { groupOrder: 2 } },
      },
      {
        extends: true,
        test: { name: 'alone', include: alone, maxWorkers: 1, sequence: { groupOrder: 3 } },
      },
    ],
  },
})
