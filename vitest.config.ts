import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const include = ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts']
const exclude = ['**/node_modules/**']
/** What measures time or load, or starts many processes: nothing else runs beside it. */
const alone = [
  'packages/limiter/src/decision/allocations.test.ts',
  'packages/limiter/src/pacing/shared-pace*.test.ts',
  'packages/limiter/src/tests/{flapping,lost-counts,outages}.test.ts',
  'packages/limiter/src/sources/**/*.test.ts',
  'packages/limiter/src/stores/failover/{deadline,failover-store,late-answers}.test.ts',
  'packages/limiter/src/stores/memory/memory-store.test.ts',
  'packages/limiter/src/stores/redis/connection/silence.test.ts',
  'test/browser/*.test.ts',
  'test/{accuracy,chaos,fuzz,simulate,streams,restarts}/*.test.ts',
  'test/gateway/{hostile,lifecycle}/*.test.ts',
  'test/gateway/http2/hostile.test.ts',
]

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  resolve: {
    // tests run on the sources, so that a stale build can never pass or fail them
    alias: [
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
      { find: /^diana-limiter\/(admin|testing)$/, replacement: `${source('packages/limiter/src/')}$1/index.ts` },
    ],
  },
  test: {
    testTimeout: 30_000,
    hookTimeout: 30_000,
    projects: [
      // most tests wait for servers and timers, so several files share a processor
      { extends: true, test: { name: 'together', include, exclude: [...exclude, ...alone], maxWorkers: 2 } },
      { extends: true, test: { name: 'alone', include: alone, maxWorkers: 1, sequence: { groupOrder: 1 } } },
    ],
  },
})
