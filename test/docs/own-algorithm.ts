import {
  type Algorithm,
  algorithms,
  createLimiter,
  InvalidLimitError,
  type LuaAlgorithm,
  type Meter,
} from 'diana-limiter'

const DAY_MS = 86_400_000
const WINDOW = 0
const COUNT = 1

/** The same in Lua, for Redis. Slots are counted from 1. */
const localDayLua: LuaAlgorithm = {
  name: 'local-day',
  lua: `
local moves = {}

local function windowAt(meter, now) return floor((now + meter.aheadUs) / meter.periodUs) end
local function endOf(meter, window) return (window + 1) * meter.periodUs - meter.aheadUs end
local function used(state, window) return state[1] == window and state[2] or 0 end

function moves.delay(meter, state, now, cost)
  if cost > meter.count then return huge end
  local window = windowAt(meter, now)
  if cost == 0 or used(state, window) + cost <= meter.count then return 0 end
  return endOf(meter, window) - now
end

function moves.take(meter, state, now, cost)
  local window = windowAt(meter, now)
  state[2] = used(state, window) + cost
  state[1] = window
end

function moves.refund(meter, state, now, cost, moment)
  local left = used(state, windowAt(meter, moment)) - cost
  if left >= 0 then state[2] = left end
end

function moves.remaining(meter, state, now)
  return max(0, meter.count - used(state, windowAt(meter, now)))
end

function moves.idleAt(meter, state) return endOf(meter, state[1]) end

return moves`,
}

/** Whole days that begin at midnight somewhere: `algorithm: local-day`, `limit: 10/d`, `utcOffset: 8`. */
export const localDay: Algorithm = {
  name: 'local-day',
  limit: 'rate',
  options: ({ z }) => ({ utcOffset: z.int().min(-12).max(14).optional().describe('hours ahead of UTC; default: 0') }),
  meter({ count, periodMs }, options): Meter {
    if (periodMs % DAY_MS !== 0)
      throw new InvalidLimitError('limit', 'counts whole days: write a period such as 1d or 7d')
    const periodUs = periodMs * 1000
    const aheadUs = Number(options.utcOffset ?? 0) * 3_600_000_000
    const windowAt = (now: number) => Math.floor((now + aheadUs) / periodUs)
    const endOf = (window: number) => (window + 1) * periodUs - aheadUs
    const used = (state: Float64Array, at: number, window: number) =>
      state[at + WINDOW] === window ? state[at + COUNT]! : 0
    return {
      slots: 2,
      maxWaitUs: 0,
      delay(state, at, now, cost) {
        if (cost > count) return Number.POSITIVE_INFINITY
        const window = windowAt(now)
        return cost === 0 || used(state, at, window) + cost <= count ? 0 : endOf(window) - now
      },
      take(state, at, now, cost) {
        const window = windowAt(now)
        state[at + COUNT] = used(state, at, window) + cost
        state[at + WINDOW] = window
      },
      refund(state, at, _now, cost, moment) {
        const left = used(state, at, windowAt(moment)) - cost
        if (left >= 0) state[at + COUNT] = left
      },
      remaining: (state, at, now) => Math.max(0, count - used(state, at, windowAt(now))),
      idleAt: (state, at) => endOf(state[at + WINDOW]!),
      redis: { lua: localDayLua, numbers: { count, periodUs, aheadUs } },
    }
  },
}

declare module 'diana-limiter' {
  interface AlgorithmOptions {
    'local-day': { readonly utcOffset?: number }
  }
}

const limiter = await createLimiter({
  algorithms: [...algorithms, localDay],
  rules: [{ id: 'sms', by: 'account', limit: '10/d', algorithm: 'local-day', utcOffset: 8 }],
})
const verdict = await limiter.check({ method: 'POST', path: '/sms', attributes: { account: 'u1' } })
console.log(verdict.allowed, verdict.decisions[0]?.remaining) // true 9
await limiter.close()
