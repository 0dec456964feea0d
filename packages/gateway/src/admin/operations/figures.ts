import type { Series } from 'diana-limiter/admin'
import { z } from 'diana-limiter/schema'
import { type Operation, operation } from './operation.ts'
import { count, counts, curve, estimate, moment, where } from './shapes.ts'

const numbers = z.array(count)
const series = z
  .object({ allowed: numbers, refused: numbers, waited: numbers, shadowRefused: numbers })
  .meta({ title: 'Series' })

const adaptiveSeries = z.object({ limit: curve, inFlight: curve, latencyMs: curve })
const overloadShape = z
  .object({
    delayMs: z.number().describe('Nine of ten delays of the event loop were no longer; of the busiest process.'),
    utilization: z
      .number()
      .describe('The part of the time in which the event loop did not wait; of the busiest process.'),
    waitMs: z.number().describe('How long calls waited for others, on average; of the busiest process.'),
    share: z.number().describe('The part of the calls that is admitted; the average of all processes.'),
    shed: z.record(z.string(), count).describe('Calls refused since the start, by level.'),
  })
  .meta({ title: 'OverloadStats' })

const source = z
  .object({
    name: z.string(),
    role: where,
    version: z.string().optional(),
    takenAt: moment.optional(),
    fromSnapshot: z.boolean(),
    taken: count,
    rejected: count,
    trouble: z.string().optional(),
  })
  .meta({ title: 'SourceStatus' })

const trouble = {
  kind: z.enum(['down', 'refuses', 'misconfigured', 'lost', 'bug']),
  code: z.string(),
  what: z.string().describe('The cause in an operator\'s words, such as "Redis refuses connections".'),
  trouble: z.string().describe('The message of the store or of the system.'),
  remedy: z.string().describe('What to do about it.'),
}

const outage = z
  .object({
    since: moment,
    until: moment.optional().describe('Left out while it lasts.'),
    ...trouble,
    calls: count.describe('Calls judged in this process meanwhile.'),
    over: z.number().describe('Of these, as far as is known, those that were admitted beyond the limit.'),
    under: z
      .number()
      .describe('Of these, as far as is known, those that were refused though the fleet might have had room.'),
  })
  .meta({ title: 'Outage' })

/** The decisions about calls with rules in Redis. */
const storeStats = z
  .object({
    asked: count.describe('Calls that the store was asked about.'),
    decidedHere: count.describe('Calls that were decided without it and without permits held in advance.'),
    leases: z
      .object({ keys: count, permits: count, decided: count, requests: count })
      .describe(
        'Permits held in advance: of how many callers, how many, the calls they decided, the requests for them.',
      ),
  })
  .meta({ title: 'StoreStats' })

const storeStatus = z
  .looseObject({
    ...storeStats.shape,
    healthy: z.boolean(),
    since: moment.describe('When this state began.'),
    ...z.object(trouble).partial().shape,
    fleet: z
      .object({ size: count, rank: count, known: z.boolean().describe('False until the store has answered.') })
      .describe('The processes that count together.'),
    rules: z.array(z.string()).describe('The rules of the fleet that this process counts by itself at this moment.'),
    outages: z.array(outage).describe('The last times without the store, the latest last.'),
  })
  .meta({ title: 'StoreStatus' })

export const statusShape: z.ObjectSchema = z
  .object({
    version: z.string(),
    startedAt: moment,
    uptimeMs: z.number(),
    demo: z.boolean(),
    processes: count,
    keys: count,
    maxKeys: count,
    overflowing: z.array(z.string()),
    sources: z.array(source),
    store: storeStatus.optional().describe('Left out where nothing is counted in Redis.'),
    workers: z
      .array(
        z.object({
          keys: count,
          store: z.object({ healthy: z.boolean(), since: moment, ...z.object(trouble).partial().shape }).optional(),
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
  .meta({ title: 'Status' })

const liveCounts = counts
  .extend({ waiting: count.optional().describe('Calls that wait at this moment.') })
  .meta({ title: 'LiveCounts' })

const liveRuleCounts = liveCounts
  .extend({
    load: z.number().optional().describe('How full the fullest key of the rule was, from 0 to 1.'),
    leased: count.optional().describe('Permits that the processes of this gateway hold in advance.'),
  })
  .meta({ title: 'LiveRuleCounts' })

const ruleCosts = z
  .object({
    amounts: z
      .object({
        reserved: z.number(),
        settled: z.number(),
        released: z.number(),
        expired: z.number(),
        overrun: z.number(),
      })
      .optional()
      .describe('Amounts reserved since the start, and their outcomes.'),
    settled: z
      .object({ usage: count, header: count, estimate: count, none: count, bounded: count })
      .optional()
      .describe('Calls by what they were settled with.'),
  })
  .meta({ title: 'RuleCosts' })

/** The data of the event `figures` of the live stream. */
export const liveFigures: z.ObjectSchema = z
  .object({
    at: moment.describe('When the second began.'),
    total: liveCounts,
    rules: z.record(z.string(), liveRuleCounts).describe('The rules that had calls, or have some that wait.'),
    store: storeStats.optional().describe('Left out where nothing is counted in Redis.'),
    adaptive: z.record(z.string(), estimate).optional().describe('What adaptive rules have found.'),
    overload: overloadShape
      .optional()
      .describe('`shed` has the calls of this second. Left out unless the rule file has `overload`.'),
    costs: z.record(z.string(), ruleCosts).optional().describe('Left out if no rule reserves.'),
  })
  .meta({ title: 'LiveFigures' })

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
    query: z.object({ seconds: z.numberInText().int().min(1).max(600).default(300) }),
    answer: z
      .object({
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
      })
      .meta({ title: 'FiguresHistory' }),
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
