-- The moves of smooth.ts.
local MOMENT, OWED, SPENT, DUST, LONGEST_DEBT_US = 1, 2, 3, 1e-9, 3e15
local moves = {}

local function elapsedAt(state, now)
  return max(0, now - state[MOMENT])
end

local function settle(meter, state, now)
  local idle = elapsedAt(state, now) - state[OWED]
  local spent = state[SPENT] - max(0, idle) / meter.coolDownUs
  if spent <= DUST then spent = 0 end
  state[OWED] = max(0, -idle)
  state[SPENT] = spent
  state[MOMENT] = max(now, state[MOMENT])
  return spent
end

local function priceUs(meter, stored, permits)
  local above = max(0, min(permits, stored - meter.threshold))
  return above * (meter.floorUs + (stored - meter.threshold - above / 2) * meter.slope) + (permits - above) * meter.floorUs
end

function moves.delay(_, state, now, cost)
  if cost == 0 then return 0 end
  local left = ceil(state[OWED] - elapsedAt(state, now))
  return left <= 0 and 0 or left + max(0, state[MOMENT] - now)
end

function moves.take(meter, state, now, cost, delay)
  local spent = settle(meter, state, now)
  local stored = min(cost, meter.largest - spent)
  local price = priceUs(meter, meter.largest - spent, stored) + (cost - stored) * meter.stableUs
  state[OWED] = max(now + delay - state[MOMENT], state[OWED]) + price
  state[SPENT] = spent + stored
end

function moves.overdraw(meter, state, now, cost)
  moves.take(meter, state, now, cost, 0)
  state[OWED] = min(LONGEST_DEBT_US, state[OWED])
end

function moves.refund(meter, state, now, cost, moment, changedAt)
  local isOpen = moment > now
  if not isOpen and moment <= changedAt then return end
  local spent = settle(meter, state, now)
  local permits = isOpen and cost or max(0, cost - (now - moment) / meter.coolDownUs)
  local tookNone = isOpen and meter.floorUs < meter.stableUs and spent == meter.largest
  local before = tookNone and spent or max(0, spent - permits)
  local price = cost * (tookNone and meter.stableUs or meter.floorUs)
  if isOpen and spent < meter.largest then price = priceUs(meter, meter.largest - before, spent - before) end
  state[SPENT] = before
  state[OWED] = max(0, state[OWED] - max(0, price - max(0, now - moment)))
end

function moves.remaining(meter, state, now)
  return moves.delay(meter, state, now, 1) == 0 and 1 or 0
end

function moves.inherit(meter, old, oldScale, now)
  local moment, oldLargest, oldCoolDownUs = old[MOMENT], oldScale[2], oldScale[3]
  local idle = max(0, now - moment) - old[OWED]
  local spent = old[SPENT] - max(0, idle) / oldCoolDownUs
  if spent <= DUST then spent = 0 end
  if idle >= 0 and spent == 0 then return { 0, 0, 0 } end
  return { max(now, moment), max(0, -idle), spent / oldLargest * meter.largest }
end

function moves.longest(meter, _, leftUs)
  return leftUs + ceil(meter.largest * meter.coolDownUs)
end

function moves.shift(_, state, us)
  state[MOMENT] = state[MOMENT] - us
end

function moves.perUs(meter)
  return 1 / meter.stableUs
end

function moves.record(meter, state, now, cost, delay, carries)
  if carries or moves.delay(meter, state, now, cost) <= delay then moves.take(meter, state, now, cost, delay) end
end

function moves.idleAt(meter, state)
  return state[MOMENT] + ceil(state[OWED] + state[SPENT] * meter.coolDownUs)
end

return moves
