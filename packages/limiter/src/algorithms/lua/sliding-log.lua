-- The moves of sliding-log.ts.
local NEXT, RING, LARGEST, DROPPED = 1, 2, 1000, 1024
local moves = {}

local function place(meter, state, offset)
  local at = state[NEXT] % DROPPED + offset
  if at < 0 then at = at + meter.places elseif at >= meter.places then at = at - meter.places end
  return RING + at
end

local function remove(meter, state, now, moment, changedAt)
  local leaves, offset = moment + meter.periodUs, meter.places - 1
  while offset >= 0 and state[place(meter, state, offset)] > leaves do offset = offset - 1 end
  if offset < 0 and moment > changedAt and state[NEXT] >= DROPPED then
    state[NEXT] = state[NEXT] - DROPPED
    return true
  end
  if offset < 0 or state[place(meter, state, offset)] ~= leaves then return false end
  for older = offset, 1, -1 do
    state[place(meter, state, older)] = state[place(meter, state, older - 1)]
  end
  if state[NEXT] >= DROPPED then
    state[NEXT] = state[NEXT] - DROPPED
    if moment <= now then return true end
  end
  local second = meter.places > 1 and state[place(meter, state, 1)] or moment
  state[place(meter, state, 0)] = min(moment, second)
  return true
end

function moves.delay(meter, state, now, cost)
  if cost > meter.count then return huge end
  if cost == 0 then return 0 end
  return max(0, state[place(meter, state, cost - 1)] - now)
end

function moves.take(meter, state, now, cost, delay)
  local leaves = max(now + delay + meter.periodUs, state[place(meter, state, -1)])
  for offset = 0, cost - 1 do state[place(meter, state, offset)] = leaves end
  local dropped = delay == 0 and 0 or min(LARGEST, floor(state[NEXT] / DROPPED) + cost)
  state[NEXT] = place(meter, state, cost) - RING + dropped * DROPPED
end

function moves.record(meter, state, now, cost, delay, carries)
  local fitsIn = carries and cost <= meter.count and moves.delay(meter, state, now, cost) or 0
  local leaves = max(now + max(delay, fitsIn) + meter.periodUs, state[place(meter, state, -1)])
  local dropped = state[place(meter, state, 0)] > now and floor(state[NEXT] / DROPPED) or 0
  local places = min(cost, meter.places)
  for offset = 0, places - 1 do
    local at = place(meter, state, offset)
    if state[at] > now then dropped = dropped + 1 end
    state[at] = leaves
  end
  dropped = min(LARGEST, dropped + cost - places)
  state[NEXT] = (state[NEXT] % DROPPED + places) % meter.places + dropped * DROPPED
end

function moves.insert(meter, state, now, cost, moment)
  local leaves, older = moment + meter.periodUs, 0
  while older < meter.places and state[place(meter, state, older)] <= leaves do older = older + 1 end
  local places = min(cost, older)
  local dropped = (state[place(meter, state, 0)] > now and floor(state[NEXT] / DROPPED) or 0) + cost - places
  for offset = 0, older - 1 do
    local at = place(meter, state, offset)
    if offset < places and state[at] > now then dropped = dropped + 1 end
    state[at] = offset + places < older and state[place(meter, state, offset + places)] or leaves
  end
  state[NEXT] = state[NEXT] % DROPPED + min(LARGEST, dropped) * DROPPED
end

function moves.overdraw(meter, state, now, cost)
  if meter.count > 0 then moves.record(meter, state, now, cost, 0, false) end
end

function moves.refund(meter, state, now, cost, moment, changedAt)
  if moment + meter.periodUs <= now then return end
  for _ = 1, cost do
    if not remove(meter, state, now, moment, changedAt) then return end
  end
end

function moves.remaining(meter, state, now)
  local low, high = 0, meter.count
  while low < high do
    local middle = floor((low + high) / 2)
    if state[place(meter, state, middle)] <= now then low = middle + 1 else high = middle end
  end
  return low
end

function moves.inherit(meter, old, oldScale, now)
  local state, oldPlaces = { 0 }, old.n - 1
  for offset = 0, meter.places - 1 do state[RING + offset] = 0 end
  local function leavesAt(age) return old[RING + (old[NEXT] % DROPPED - age + oldPlaces) % oldPlaces] end
  local dropped = leavesAt(oldPlaces) > now and floor(old[NEXT] / DROPPED) or 0
  local known = oldPlaces + min(dropped, max(0, meter.places - oldPlaces))
  dropped = dropped - (known - oldPlaces)
  for age = 1, known do
    local leaves = leavesAt(min(age, oldPlaces))
    if leaves <= now then break end
    if age > meter.places then
      dropped = dropped + 1
    else
      state[RING + meter.places - age] = leaves + meter.periodUs - oldScale[1]
    end
  end
  state[NEXT] = dropped * DROPPED
  return state
end

function moves.shift(meter, state, us)
  for offset = 0, meter.places - 1 do state[RING + offset] = max(0, state[RING + offset] - us) end
end

function moves.perUs(meter)
  return meter.count / meter.periodUs
end

function moves.idleAt(meter, state)
  return state[place(meter, state, -1)]
end

return moves
