import { adminOf, type HistoryRange, type SecondCounts } from 'diana-limiter/admin'
import { classifyError } from 'diana-limiter/gateway'
import { z } from 'diana-limiter/schema'
import { type AdminContext, type Operation, operation } from './operation.ts'
import { count, counts, moment, ruleId } from './shapes.ts'

const week = 7 * 86_400

const steps = z.array(count.nullable())
const series = z.object({ allowed: steps, refused: steps, waited: steps, shadowRefused: steps }).meta({
  title: 'StepSeries',
  description: 'Calls in each step, oldest first; null for a step of which nothing is known.',
})
const scope = z.enum(['fleet', 'gateway', 'process']).meta({ title: 'HistoryScope' })

const query = z.object({
  seconds: z.numberInText().int().min(10).max(week).default(300).describe('How long the time is.'),
  to: z.numberInText().int().min(0).optional().describe('When it ends, in milliseconds since 1970; now unless given.'),
  scope: scope
    .optional()
    .describe('All processes that count in the same Redis, or this gateway; the fleet if there is one.'),
  process: z.string().max(128).optional().describe('Which process of the fleet, if scope is process.'),
  rule: ruleId.optional().describe('One rule; all calls unless given.'),
})

type Query = z.output<typeof query>

export const historyOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/history',
    summary:
      'A time of up to a week within the last week, in steps that depend on its length, beside the time of the same length before it.',
    query,
    answer: z
      .object({
        scope: scope.describe('What is shown: not the fleet if Redis does not answer.'),
        trouble: z.string().optional().describe('Why it is not the scope that was asked for.'),
        from: moment,
        to: moment,
        stepMs: z.number(),
        series,
        before: series,
        rules: z
          .array(counts.extend({ id: z.string(), before: counts }))
          .describe('What each rule did in this time, and in the time before; of the thousand with the most calls.'),
        processes: z
          .array(counts.extend({ name: z.string() }))
          .describe('What each process of the fleet did in this time; empty unless scope is fleet.'),
      })
      .meta({ title: 'History' }),
    run: async ({ query: asked }, context) => await readHistory(asked, context),
  }),
]

async function readHistory(asked: Query, { limiter, live }: AdminContext): Promise<object> {
  const { seconds, to, rule, process } = asked
  const wanted = { lengthMs: seconds * 1000, to, rule }
  const fleet = adminOf(limiter).fleetHistory
  const gateway = (trouble?: string) => ({
    scope: 'gateway',
    ...(trouble !== undefined && { trouble }),
    ...show(live.history.range(wanted, Date.now())),
    processes: [],
  })
  if (asked.scope === 'gateway') return gateway()
  if (fleet === undefined) return gateway(asked.scope && 'Nothing is counted in Redis, so there is no fleet to show.')
  const isOne = asked.scope === 'process' && process !== undefined
  try {
    const range = await fleet.read({ ...wanted, process: isOne ? process : undefined })
    const processes = isOne ? [] : [...range.processes].map(([name, one]) => ({ name, ...one }))
    return { scope: isOne ? 'process' : 'fleet', ...show(range), processes }
  } catch (error) {
    const { what } = classifyError(error)
    return gateway(`${what.charAt(0).toUpperCase()}${what.slice(1)}.`)
  }
}

const none: SecondCounts = { allowed: 0, refused: 0, waited: 0, shadowRefused: 0 }

function show({ rules, rulesBefore, ...range }: HistoryRange): object {
  const { from, to, stepMs, series: shown, before } = range
  const byRule = [...rules].map(([id, one]) => ({ id, ...one, before: rulesBefore.get(id) ?? none }))
  return { from, to, stepMs, series: shown, before, rules: byRule }
}
