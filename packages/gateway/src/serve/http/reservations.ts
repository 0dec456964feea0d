import { randomUUID } from 'node:crypto'
import { type Call, formatDuration, type Limiter, parseDuration, type Reservation, type Verdict } from 'diana-limiter'
import { z } from 'diana-limiter/schema'
import { Refusal } from '../../http/refusal.ts'
import { type AskedCall, askedCall, checkedCall } from './check-shapes.ts'
import type { ApiOperation } from './openapi.ts'

const mostOpen = 100_000
const usualHold = '10m'
const longestHoldMs = 86_400_000
const maxActual = 1_000_000_000

interface ReserveQuestion {
  readonly call: AskedCall
  readonly hold: string
}

interface SettleQuestion {
  readonly id: string
  readonly actual: number | Readonly<Record<string, number>>
}

function holdFault(text: string): boolean {
  const ms = parseDuration(text)
  return ms !== undefined && ms >= 1 && ms <= longestHoldMs
}

const reserveQuestion: z.Schema<ReserveQuestion> = z.strictObject({
  call: askedCall.describe('Its cost is what is reserved, unless its rules say what to reserve.'),
  hold: z
    .string()
    .refine(holdFault, { error: 'must be a duration from 1ms to 1d, such as 10m' })
    .default(usualHold)
    .describe('What is not settled is released after this time; default: 10m.'),
})

const amount = z.int().min(0).max(maxActual)

const settleQuestion: z.Schema<SettleQuestion> = z.strictObject({
  id: z.string().min(1).max(64),
  actual: z
    .union([amount, z.record(z.string().min(1).max(256), amount)])
    .describe('What was really used: by all rules, or by the ids of rules; 0 releases everything.'),
})

/** The parts of the JSON API that this needs. */
export interface ReservationParts {
  readonly limiter: Limiter
  callOf(asked: AskedCall): Call
  resultOf(verdict: Verdict): object
}

/** Reservations of programs, from when they are made until they are settled or their time is over. They belong to this process. */
export function reservationOperations({ limiter, callOf, resultOf }: ReservationParts): readonly ApiOperation[] {
  const open = new Map<string, { readonly reservation: Reservation; readonly timer: NodeJS.Timeout }>()
  return [
    {
      path: '/v1/reserve',
      summary: 'Charges in advance what a call may cost; what is not settled in time is released.',
      body: reserveQuestion,
      answer: z.object({
        id: z.string().optional().describe('For /v1/settle; absent if the call is refused.'),
        hold: z.string(),
        result: checkedCall,
      }),
      run: async body => {
        const { call: asked, hold } = body as ReserveQuestion
        if (open.size >= mostOpen) throw new Refusal(503, `${mostOpen} reservations are open: settle some of them`)
        const { cost, rules } = asked
        const named = rules === undefined ? {} : { rule: rules, only: true }
        const reservation = await limiter.reserve(callOf(asked), { ...named, cost, hold })
        const result = resultOf(reservation.verdict)
        const holdMs = parseDuration(hold)!
        if (!reservation.allowed) return { hold: formatDuration(holdMs), result }
        const id = randomUUID()
        // the store has released it by then
        const timer = setTimeout(() => open.delete(id), holdMs).unref()
        open.set(id, { reservation, timer })
        return { id, hold: formatDuration(holdMs), result }
      },
    },
    {
      path: '/v1/settle',
      summary: 'Makes a reservation count as what was really used.',
      body: settleQuestion,
      answer: z.object({ settled: z.boolean() }),
      run: async body => {
        const { id, actual } = body as SettleQuestion
        const known = open.get(id)
        if (known === undefined)
          throw new Refusal(404, 'No such reservation is open here: it was settled, or released.')
        open.delete(id)
        clearTimeout(known.timer)
        await known.reservation.settle(actual)
        return { settled: true }
      },
    },
  ]
}
