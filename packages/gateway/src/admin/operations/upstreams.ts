import { z } from 'zod'
import { type Operation, operation } from './operation.ts'
import { count } from './shapes.ts'

const address = z.object({
  address: z.string(),
  state: z
    .enum(['healthy', 'resting', 'unhealthy'])
    .describe('resting: after failed calls; unhealthy: by health checks.'),
  restMs: z.number().min(0).optional().describe('How long the rest still takes.'),
  why: z.string().optional().describe('What the last failure was.'),
  weight: count,
  share: z.number().min(0).describe('Its weight at this moment, while it starts slowly.'),
  underWay: count,
  waiting: count.describe('Calls that wait for a connection.'),
})

export const upstreamOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/upstreams',
    summary:
      'The addresses of every route, and how they are doing; of several workers, the worst that one of them knows.',
    answer: z.object({
      routes: z.array(
        z.object({
          host: z.array(z.string()),
          path: z.string(),
          addresses: z.array(address),
          troubles: z.array(z.string()).describe('Names whose last lookup failed.'),
        }),
      ),
    }),
    run: async (_, { processes }) => ({ routes: await processes.upstreams() }),
  }),
]
