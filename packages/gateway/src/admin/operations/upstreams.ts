import { z } from 'diana-limiter/schema'
import { stepSeconds } from '../services/service-history.ts'
import { type Operation, operation } from './operation.ts'
import { count, moment } from './shapes.ts'

const address = z.object({
  address: z.string(),
  state: z
    .enum(['healthy', 'resting', 'unhealthy', 'draining'])
    .meta({ title: 'AddressState' })
    .describe(
      'resting: after failed calls; unhealthy: by health checks; draining: no longer in the route, until its last call has ended.',
    ),
  forMs: z.number().min(0).optional().describe('How long it has been in this state; left out if since the start.'),
  restMs: z.number().min(0).optional().describe('How long the rest still takes.'),
  why: z.string().optional().describe('What the last failure was.'),
  weight: count,
  share: z.number().min(0).describe('Its weight at this moment, while it starts slowly.'),
  underWay: count,
  waiting: count.describe('Calls that wait for a connection.'),
  connections: count.describe('Connections to it that are open; routes with the same settings share them.'),
})

const route = {
  id: z.string().describe('Identifies the route, also after a reload.'),
  host: z.array(z.string()),
  path: z.string(),
  method: z.array(z.string()).describe('The methods that it takes; none is every method.'),
  headers: z.array(z.string()).describe('The names of headers that it asks for.'),
  troubles: z.array(z.string()).describe('Names whose last lookup failed.'),
}

const quantile = z.number().nullable()
const figures = z
  .object({
    perSecond: z.number().min(0).describe('Calls per second, in the last ten seconds; each try is one.'),
    calls: count.describe('In the last minute.'),
    errors: count.describe(
      'Of these, those with a 5xx status, an answer that broke off, or a failure after which the call was tried again.',
    ),
    retries: count.describe('Of these, those that came after a try had failed.'),
    latency: z
      .object({ p50Ms: quantile, p95Ms: quantile, p99Ms: quantile })
      .optional()
      .describe(
        'How long answers took to begin in the last minute: upper bounds, each at most twice the one below it; null is longer than a minute. Left out if there was no answer.',
      ),
    history: z
      .object({ calls: z.array(count), errors: z.array(count) })
      .describe('The last five minutes in steps, oldest first.'),
  })
  .meta({ title: 'ServiceFigures' })
const measured = figures.optional().describe('Left out if there was no call in the last five minutes.')
const measuredAddress = address.extend({ figures: measured }).meta({ title: 'ServiceAddress' })

export const upstreamOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/upstreams',
    summary:
      'The addresses of every route, and how they are doing; of several workers, the worst that one of them knows.',
    answer: z.object({
      routes: z.array(z.object({ ...route, addresses: z.array(address) })),
    }),
    run: async (_, { processes }) => ({ routes: await processes.upstreams() }),
  }),
  operation({
    method: 'GET',
    path: '/services',
    summary: 'Every route and its addresses: how they are doing, and what became of calls in the last minutes.',
    isOffered: ({ live }) => live.hasServices,
    answer: z.object({
      at: moment.describe('When the newest second began; it is whole.'),
      stepMs: z.literal(stepSeconds * 1000),
      routes: z.array(
        z.object({ ...route, figures: measured, addresses: z.array(measuredAddress) }).meta({ title: 'ServiceRoute' }),
      ),
    }),
    refusals: { 404: 'no calls are forwarded to services', 503: 'no process that takes calls has reported yet' },
    run: async (_, { processes, live: { services } }) => {
      const routes = (await processes.upstreams()).map(one => ({
        ...one,
        figures: services.read(one.id),
        addresses: one.addresses.map(two => ({ ...two, figures: services.read(one.id, two.address) })),
      }))
      return { at: services.at, stepMs: stepSeconds * 1000, routes }
    },
  }),
]
