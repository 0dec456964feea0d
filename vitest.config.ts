import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

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
      { find: /^diana-limiter\/(words|counting)$/, replacement: `${source('packages/limiter/src/')}$1.ts` },
      {
        find: /^diana-limiter\/(opentelemetry|prom-client)$/,
        replacement: `${source('packages/limiter/src/metrics/')}$1.ts`,
      },
      { find: /^diana-limiter\/testing$/, replacement: source('packages/limiter/src/testing/index.ts') },
    ],
  },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts'],
    testTimeout: 30_000,
  },
})
