import { z } from 'diana-limiter/schema'
import { type Operation, operation } from './operation.ts'
import { count, curve, moment } from './shapes.ts'

const share = z.number().min(0)

const oneProcess = z
  .object({
    pid: count,
    startedAt: moment,
    load: z.object({
      utilization: share.describe('The part of the last second in which the event loop did not wait.'),
      delay: z
        .object({ p50Ms: share, p99Ms: share })
        .describe('How late the event loop ran timers: half of them, and 99 of 100, no later, in about ten seconds.'),
      cpu: share.describe('Processor time in the last second: 1 is one processor in full use.'),
      rssBytes: count,
      heapUsedBytes: count,
      heapLimitBytes: count,
    }),
    callers: z
      .object({
        connections: count.describe("Callers' connections that are open."),
        inProgress: count.describe('Calls under way, also those that have become WebSockets.'),
        rejected: z
          .record(z.string(), count)
          .describe('Calls and connections turned away without a rule in the last five minutes, by reason.'),
      })
      .optional()
      .describe('Left out if the process serves no calls itself: the limiter works in an application.'),
    history: z
      .object({ utilization: curve, delayMs: curve, cpu: curve, rssBytes: curve, heapUsedBytes: curve })
      .describe('Averages of the last five minutes in steps, oldest first; null where nothing is known.'),
  })
  .meta({ title: 'GatewayProcess' })

export const processOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/processes',
    summary:
      'Each process that decides calls: how busy it is, its memory and its callers, now and in the last minutes.',
    answer: z.object({
      at: moment.describe('When the newest second began; it is whole.'),
      stepMs: z.literal(5000),
      processes: z.array(oneProcess),
    }),
    run: (_, { live: { processHistory } }) => {
      return { at: processHistory.at, stepMs: 5000, processes: processHistory.read() }
    },
  }),
]
