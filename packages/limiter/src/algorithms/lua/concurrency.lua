-- The moves of concurrency.ts. In Redis a slot belongs to a holder, a process, for as long as the process renews its lease: the
-- state is holder, slots, end of the lease; and so on. The slots of a process that died are released when its lease has ended.
-- A renewal has how many slots the process holds, at least and at most, since answers may be pending or lost.
local moves = {}

-- Drops the leases that have ended, and returns where the holder's own is and how many slots are taken.
local function dropEnded(meter, state, now)
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
  local _, taken = dropEnded(meter, state, now)
  return taken + cost <= meter.count and 0 or huge
end

local function extend(meter, state, now)
  local own = dropEnded(meter, state, now)
  if not own then
    own = state.n + 1
    state[own], state[own + 1], state.n = meter.holder, 0, state.n + 3
  end
  state[own + 2] = now + meter.leaseUs
  return own + 1
end

function moves.take(meter, state, now, cost)
  local slots = extend(meter, state, now)
  state[slots] = state[slots] + cost
end

function moves.renew(meter, state, now, least, most)
  local slots = extend(meter, state, now)
  state[slots] = max(least, min(most, state[slots]))
end

function moves.refund(meter, state, now, cost)
  local own = dropEnded(meter, state, now)
  if not own then return end
  state[own + 1] = max(0, state[own + 1] - cost)
  state[own + 2] = now + meter.leaseUs
end

function moves.remaining(meter, state, now)
  local _, taken = dropEnded(meter, state, now)
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

return moves
