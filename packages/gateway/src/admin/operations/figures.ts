import type { Series } from 'diana-limiter/admin'
import { z } from 'zod'
import { type Operation, operation } from './operation.ts'
import { count, milliseconds, moment } from './shapes.ts'

const numbers = z.array(count)
const series = z.object({ allowed: numbers, refused: numbers, waited: numbers, shadowRefused: numbers })

const curve = z.array(z.number().nullable()).describe('null for a second of which nothing is known')
const adaptiveSeries = z.object({ limit: curve, inFlight: curve, latencyMs: curve })
const overloadShape = z.object({
  delayMs: z.number().describe('Nine of ten delays of the event loop were no longer; of the busiest process.'),
  utilization: z
    .number()
    .describe('The part of the time in which the event loop did not wait; of the busiest process.'),
  waitMs: z.number().describe('How long calls waited for others, on average; of the busiest process.'),
  share: z.number().describe('The part of the calls that is admitted; the average of all processes.'),
  shed: z.record(z.string(), count).describe('Calls refused since the start, by level.'),
})

const source = z.object({
  name: z.string(),
  role: z.enum(['local', 'remote']),
  version: z.string().optional(),
  takenAt: moment.optional(),
  fromSnapshot: z.boolean(),
  taken: count,
  rejected: count,
  trouble: z.string().optional(),
})

export const statusShape: z.ZodObject = z.object({
  version: z.string(),
  startedAt: moment,
  uptimeMs: z.number(),
  demo: z.boolean(),
  processes: count,
  keys: count,
  maxKeys: count,
  overflowing: z.array(z.string()),
  sources: z.array(source),
  store: z
    .looseObject({
      healthy: z.boolean(),
      since: milliseconds,
      trouble: z.string().optional(),
      asked: count.describe('Calls that the store was asked about.'),
      decidedHere: count.describe('Calls that were decided without it and without permits held in advance.'),
      leases: z
        .object({ keys: count, permits: count, decided: count, requests: count })
        .describe(
          'Permits held in advance: of how many callers, how many, the calls they decided, the requests for them.',
        ),
    })
    .optional()
    .describe('Left out where nothing is counted in Redis.'),
  workers: z
    .array(
      z.object({
        keys: count,
        store: z.object({ healthy: z.boolean(), since: milliseconds, trouble: z.string().optional() }).optional(),
      }),
    )
    .optional()
    .describe('Each worker by itself; left out if one process decides all calls.'),
  fleetHistory: z.boolean().describe('Whether /history knows the whole fleet.'),
  troubledRoutes: z
    .array(z.object({ id: z.string(), route: z.string(), unhealthy: count, of: count }))
    .describe(
      'Routes of which addresses get no calls at this moment, because calls or health checks failed; at most 20 of a process.',
    ),
  overload: overloadShape.optional().describe('Left out unless the rule file has `overload`.'),
})

export const figureOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/status',
    summary: 'What the limiter is doing at this moment.',
    answer: statusShape,
    run: (_, { live }) => live.status(),
  }),
  operation({
    method: 'GET',
    path: '/figures',
    summary: 'The last seconds, oldest first, of all calls and of the rules that had any (the busiest thousand).',
    query: z.object({ seconds: z.coerce.number().int().min(1).max(600).default(300) }),
    answer: z.object({
      at: moment.describe('When the newest second began; it is whole.'),
      stepMs: z.literal(1000),
      total: series,
      rules: z.record(z.string(), series),
      loads: z
        .record(z.string(), z.number())
        .describe(
          'How full the fullest key was, from 0 to 1, at the last call of each rule that had one in the last minute.',
        ),
      adaptive: z
        .record(z.string(), adaptiveSeries)
        .describe('What adaptive rules have found: the sum of all processes, latency the average.'),
      overload: z
        .object({ share: curve, shed: z.record(z.string(), curve).describe('calls refused, by level') })
        .optional(),
    }),
    run: ({ query }, { live }) => {
      const { at, total, rules } = live.history.read(query.seconds)
      return {
        at,
        stepMs: 1000,
        total,
        rules: Object.fromEntries<Series>(rules),
        loads: live.loads(),
        ...live.overloadHistory.read(query.seconds, at),
      }
    },
  }),
]
