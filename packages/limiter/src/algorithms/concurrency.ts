import type { Algorithm, Limit, LuaAlgorithm, Meter } from './algorithm.ts'

/*
 * Concurrency: how many calls are in flight at one time. A call takes a slot when it begins and releases it when it
 * ends, however it ends; time alone frees nothing.
 *
 *   in flight |    __    ____
 *             | __|  |__|    |_      limit: 50
 *             +------------------ time
 *
 * A changed limit applies to the calls that come; those under way finish.
 */
const IN_FLIGHT = 0

export const concurrency: Algorithm = {
  name: 'concurrency',
  limit: 'count',
  options: {},
  meter(limit: Limit): Meter {
    return new Concurrency(limit.count)
  },
}

class Concurrency implements Meter {
  readonly slots = 1
  readonly needsRelease = true
  readonly lua: LuaAlgorithm = concurrencyLua
  readonly numbers: Readonly<Record<string, number>>
  readonly maxWaitUs = 0
  readonly scale: readonly number[] = [0]
  readonly #count: number

  constructor(count: number) {
    this.#count = count
    this.numbers = { count }
  }

  delay(state: Float64Array, at: number, _now: number, cost: number): number {
    return state[at + IN_FLIGHT]! + cost <= this.#count ? 0 : Number.POSITIVE_INFINITY
  }

  take(state: Float64Array, at: number, _now: number, cost: number): void {
    state[at + IN_FLIGHT] = state[at + IN_FLIGHT]! + cost
  }

  refund(state: Float64Array, at: number, _now: number, cost: number): void {
    state[at + IN_FLIGHT] = Math.max(0, state[at + IN_FLIGHT]! - cost)
  }

  remaining(state: Float64Array, at: number): number {
    return Math.max(0, this.#count - state[at + IN_FLIGHT]!)
  }

  inherit(old: ArrayLike<number>, _oldScale: readonly number[], state: Float64Array, at: number): void {
    state[at + IN_FLIGHT] = old[IN_FLIGHT]!
  }

  idleAt(state: Float64Array, at: number): number {
    return state[at + IN_FLIGHT] === 0 ? 0 : Number.POSITIVE_INFINITY
  }
}

/*
 * In Redis a slot belongs to a holder, a process, for as long as the process renews its lease: the state is holder,
 * slots, end of the lease; and so on. The slots of a process that died are released when its lease has ended. A
 * renewal has how many slots the process holds, at least and at most, since answers may be pending or lost.
 */
export const concurrencyLua: LuaAlgorithm = {
  name: 'concurrency',
  lua: `
local moves = {}

-- drops the leases that have ended, and returns where the holder's own is and how many places are taken
local function settle(meter, state, now)
  local kept, own, taken = 0, nil, 0
  for at = 1, state.n, 3 do
    if state[at + 2] > now and state[at + 1] > 0 then
      state[kept + 1], state[kept + 2], state[kept + 3] = state[at], state[at + 1], state[at + 2]
      if state[at] == meter.holder then own = kept + 1 end
      taken = taken + state[at + 1]
      kept = kept + 3
    end
  end
  state.n = kept
  return own, taken
end

function moves.delay(meter, state, now, cost)
  local _, taken = settle(meter, state, now)
  return taken + cost <= meter.count and 0 or huge
end

local function extend(meter, state, now)
  local own = settle(meter, state, now)
  if not own then
    own = state.n + 1
    state[own], state[own + 1], state.n = meter.holder, 0, state.n + 3
  end
  state[own + 2] = now + meter.leaseUs
  return own + 1
end

function moves.take(meter, state, now, cost)
  local places = extend(meter, state, now)
  state[places] = state[places] + cost
end

function moves.renew(meter, state, now, least, most)
  local places = extend(meter, state, now)
  state[places] = max(least, min(most, state[places]))
end

function moves.refund(meter, state, now, cost)
  local own = settle(meter, state, now)
  if not own then return end
  state[own + 1] = max(0, state[own + 1] - cost)
  state[own + 2] = now + meter.leaseUs
end

function moves.remaining(meter, state, now)
  local _, taken = settle(meter, state, now)
  return max(0, meter.count - taken)
end

function moves.inherit(_, old)
  return old
end

function moves.shift(_, state, us)
  for at = 1, state.n, 3 do state[at + 2] = state[at + 2] - us end
end

function moves.idleAt(_, state)
  local last = 0
  for at = 1, state.n, 3 do
    if state[at + 1] > 0 then last = max(last, state[at + 2]) end
  end
  return last
end

return moves`,
}
