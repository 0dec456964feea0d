-- The moves of bucket.ts and low-points.ts.
local LEVEL, MOMENT, LOWS, LAST, SLOTS, FLAT, LONGEST_US = 1, 2, 3, 9, 10, 0.75, 86400000000
local moves = {}

local function refillBetween(refill, from, to)
  return to <= from and 0 or ceil((to - from) / refill.stepUs) * refill.perStep
end

local function makeRoom(state)
  local flattest, largest = LAST, 0
  for at = LAST, LOWS + 2, -2 do
    local ratio = state[at - 2] / state[at]
    if ratio >= largest then flattest, largest = at, ratio end
  end
  for slot = flattest, LAST - 1 do state[slot] = state[slot + 2] end
end

local function noteLow(state, since, low)
  local at, top = LOWS, state[LAST]
  if top < low and top >= low * FLAT then return end
  while at <= LAST and state[at] > 0 do at = at + 2 end
  while at > LOWS and state[at - 2] >= low do
    at = at - 2
    since = min(since, state[at + 1])
    state[at], state[at + 1] = 0, 0
  end
  if low <= 0 then return end
  if at > LAST then
    makeRoom(state)
    at = LAST
  end
  state[at], state[at + 1] = low, since
end

local function lowerSteps(state, moment, units, low)
  local kept, below = LOWS, 0
  for at = LOWS, LAST, 2 do
    local height, since = state[at], state[at + 1]
    local lowered = since >= moment and height - units or min(height, low - units)
    state[at], state[at + 1] = 0, 0
    if lowered > below then
      state[kept], state[kept + 1] = lowered, since
      below, kept = lowered, kept + 2
    end
  end
end

local function levelAfter(elapsedUs, level, refill)
  if elapsedUs < refill.stepUs then return level end
  local steps = floor(elapsedUs / refill.stepUs)
  if steps >= level / refill.perStep then return 0 end
  return level - steps * refill.perStep
end

local function stepBefore(moment, now, stepUs)
  return now <= moment and moment or moment + floor((now - moment) / stepUs) * stepUs
end

-- The beginning of a step that no call has begun before.
local function stepFrom(refill, now)
  return refill.aligned == 1 and stepBefore(0, now, refill.stepUs) or now
end

local function advance(state, moment, refill)
  local last = state[MOMENT]
  if moment <= last then return end
  local level = levelAfter(moment - last, state[LEVEL], refill)
  local isAligned = refill.aligned == 1
  local begun = level == 0 and not isAligned and moment or stepBefore(isAligned and 0 or last, moment, refill.stepUs)
  if begun == last then return end
  noteLow(state, last, level)
  state[LEVEL], state[MOMENT] = level, begun
end

local function rewind(state, moment, refill)
  local steps = ceil((state[MOMENT] - moment) / refill.stepUs)
  state[LEVEL], state[MOMENT] = state[LEVEL] + steps * refill.perStep, state[MOMENT] - steps * refill.stepUs
  local isLast = false
  for at = LOWS, LAST, 2 do
    if isLast then
      state[at], state[at + 1] = 0, 0
    elseif state[at + 1] > state[MOMENT] then
      state[at + 1], isLast = state[MOMENT], true
    end
  end
end

local function paidOffUs(level, refill)
  if level == 0 then return 0 end
  return refill.perStep == 0 and LONGEST_US or ceil(level / refill.perStep) * refill.stepUs
end

local function inTokensOf(token, level, oldToken)
  local whole = floor(level / oldToken)
  local rest = level - whole * oldToken
  local part = rest * token < 2 ^ 53 and ceil(rest * token / oldToken) or floor(rest / oldToken * token) + 1
  return whole * token + min(token, part)
end

local function inWholeUnits(token, level, oldToken)
  local whole = floor(level / oldToken)
  return whole * token + max(0, floor((level - whole * oldToken) / oldToken * token) - 1)
end

local function isNew(meter, state, now)
  return meter.startsEmpty == 1 and now >= moves.idleAt(meter, state)
end

local function isAhead(meter, state, now)
  return meter.waits == 1 and meter.stepUs > 1 and state[MOMENT] > now
end

local function debtAt(meter, state, now)
  if meter.startsEmpty == 1 and isNew(meter, state, now) then return meter.capacity end
  local elapsedUs = now - state[MOMENT]
  return elapsedUs < meter.stepUs and state[LEVEL] or levelAfter(elapsedUs, state[LEVEL], meter)
end

function moves.delay(meter, state, now, cost)
  if cost > meter.largest then return huge end
  if cost == 0 then return 0 end
  local missing = debtAt(meter, state, now) + cost * meter.token - meter.capacity
  if missing <= 0 then return meter.waits == 1 and isAhead(meter, state, now) and state[MOMENT] - now or 0 end
  local begun = isNew(meter, state, now) and stepFrom(meter, now) or stepBefore(state[MOMENT], now, meter.stepUs)
  return begun + ceil(missing / meter.perStep) * meter.stepUs - now
end

function moves.begin(meter, state, now)
  if not isNew(meter, state, now) then return false end
  for slot = 1, SLOTS do state[slot] = 0 end
  state[LEVEL], state[MOMENT] = meter.capacity, stepFrom(meter, now)
  return true
end

function moves.take(meter, state, now, cost, delay)
  if meter.startsEmpty == 1 then moves.begin(meter, state, now) end
  if now + delay > state[MOMENT] then advance(state, now + delay, meter) end
  local before = state[LEVEL]
  local level = max(before, min(before > meter.capacity and meter.mostDebt or meter.capacity, before + cost * meter.token))
  local isBrimful = delay > 0 and meter.stepUs == 1 and meter.capacity - level < meter.perStep
  if isBrimful then level = max(level, meter.capacity - meter.token + 1) end
  state[LEVEL] = level
  local fullAt = state[MOMENT] + paidOffUs(level, meter)
  return moves.remaining(meter, state, now), fullAt + meter.keptUs, fullAt
end

function moves.overdraw(meter, state, now, cost)
  if meter.startsEmpty == 1 then moves.begin(meter, state, now) end
  if now > state[MOMENT] then advance(state, now, meter) end
  local before = state[LEVEL]
  local units = min(cost, meter.mostDebt / meter.token) * meter.token
  state[LEVEL] = max(before, min(meter.mostDebt, before + units))
end

function moves.refund(meter, state, now, cost, moment, changedAt)
  if isNew(meter, state, now) then return end
  local last = state[MOMENT]
  local at = meter.waits == 1 and now or max(now, last)
  local isKnown = moment > changedAt or meter.aligned ~= 1
  local isLast = isKnown and (moment >= at or moment >= last)
  if at < last then rewind(state, at, meter) else advance(state, at, meter) end
  local level, units = state[LEVEL], cost * meter.token
  local low, unpaid = level, min(units, level)
  if not isLast then
    units, low, unpaid = min(units, meter.capacity), 0, 0
    local isRefill = moment > changedAt
    if isRefill then unpaid = min(level, units - refillBetween(meter, moment, at)) end
    for place = LOWS, LAST, 2 do
      local height, since = state[place], state[place + 1]
      if height <= 0 then break end
      if since <= moment then
        low = height
      elseif isRefill then
        unpaid = max(unpaid, min(height, units - refillBetween(meter, moment, since)))
      end
    end
    unpaid = min(units, max(low, unpaid))
  end
  if unpaid <= 0 then return end
  lowerSteps(state, moment, unpaid, low)
  state[LEVEL] = max(0, level - unpaid)
end

function moves.remaining(meter, state, now)
  if meter.waits == 1 and isAhead(meter, state, now) then return 0 end
  local left = floor((meter.capacity - debtAt(meter, state, now)) / meter.token)
  return left > 0 and left or 0
end

function moves.inherit(meter, old, oldScale, now)
  local refill, oldToken = { perStep = oldScale[3], stepUs = oldScale[4] }, oldScale[2]
  local state = {}
  for slot = 1, SLOTS do state[slot] = 0 end
  if now >= old[MOMENT] + paidOffUs(old[LEVEL], refill) + oldScale[5] then return state end
  if old[MOMENT] > now then rewind(old, now, refill) else advance(old, now, refill) end
  state[LEVEL] = inTokensOf(meter.token, old[LEVEL], oldToken)
  local continues = refill.stepUs == meter.stepUs and meter.aligned ~= 1
  state[MOMENT] = continues and old[MOMENT] or stepFrom(meter, now)
  for at = LOWS, LAST, 2 do
    state[at] = inWholeUnits(meter.token, old[at], oldToken)
    if state[at] > 0 then state[at + 1] = old[at + 1] end
  end
  lowerSteps(state, -huge, 0, 0)
  return state
end

function moves.longest(meter, oldScale, leftUs)
  if meter.perStep == 0 then return LONGEST_US + meter.keptUs end
  local tokens = (oldScale[6] + ceil(leftUs / oldScale[4]) * oldScale[3]) / oldScale[2] + 1
  return (ceil(tokens * meter.token / meter.perStep) + 1) * meter.stepUs + meter.keptUs
end

function moves.shift(meter, state, us)
  state[MOMENT] = state[MOMENT] - us
  -- no step ends earlier than it would have
  if meter.aligned == 1 then state[MOMENT] = ceil(state[MOMENT] / meter.stepUs) * meter.stepUs end
  for at = LOWS, LAST, 2 do
    if state[at] > 0 then state[at + 1] = state[at + 1] - us end
  end
end

function moves.perUs(meter)
  return meter.perStep / (meter.token * meter.stepUs)
end

function moves.idleAt(meter, state)
  if state[LEVEL] == 0 and state[MOMENT] == 0 then return 0 end
  return state[MOMENT] + paidOffUs(state[LEVEL], meter) + meter.keptUs
end

function moves.fullAt(meter, state)
  return state[MOMENT] + paidOffUs(state[LEVEL], meter)
end

return moves
