// Generated from the .lua files beside it by npm run lua: do not edit.

import type { LuaAlgorithm } from '../algorithm.ts'

export const blockLua: LuaAlgorithm = { name: 'block', lua: `
local UNTIL, STEPS, ONCE = 1, 2, 2 ^ 40
local moves = {}

local function stepsOf(meter, state, now)
  if now >= state[UNTIL] + meter.forgetAfterMs * 1000 then return 0 end
  return state[STEPS]
end

local function lastsMs(meter, steps)
  local ms, step = meter.firstMs, 0
  while step < steps and ms < meter.maxMs and meter.factor > 1 do
    ms, step = ms * meter.factor, step + 1
  end
  return min(meter.maxMs, floor(ms))
end

function moves.delay(_, state, now, cost)
  return cost > 0 and 0 or max(0, state[UNTIL] - now)
end

function moves.take(meter, state, now, cost)
  if cost < ONCE then
    if meter.firstMs then state[STEPS] = stepsOf(meter, state, now) end
    state[UNTIL] = max(state[UNTIL], now + cost * 1000)
  elseif state[UNTIL] <= now then
    if meter.firstMs then
      local steps = stepsOf(meter, state, now)
      state[UNTIL], state[STEPS] = now + lastsMs(meter, steps) * 1000, steps + 1
    else
      state[UNTIL] = now + (cost - ONCE) * 1000
    end
  end
end

function moves.refund()
end

function moves.remaining(meter, state, now)
  if state[UNTIL] > now then return 0 end
  return meter.firstMs and lastsMs(meter, stepsOf(meter, state, now)) or 1
end

function moves.inherit(meter, old)
  if not meter.firstMs then return { old[UNTIL] } end
  return { old[UNTIL], old[STEPS] or 0 }
end

function moves.shift(_, state, us)
  state[UNTIL] = max(0, state[UNTIL] - us)
end

function moves.longest(meter, _, leftUs)
  return leftUs + (meter.forgetAfterMs or 0) * 1000
end

function moves.idleAt(meter, state)
  return state[UNTIL] == 0 and 0 or state[UNTIL] + (meter.forgetAfterMs or 0) * 1000
end

function moves.fullAt(_, state)
  return state[UNTIL]
end

return moves
` }

export const bucketLua: LuaAlgorithm = { name: 'bucket', lua: `
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

local function advance(state, moment, refill)
  local last = state[MOMENT]
  if moment <= last then return end
  local level = levelAfter(moment - last, state[LEVEL], refill)
  local begun = level == 0 and moment or stepBefore(last, moment, refill.stepUs)
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
  local begun = isNew(meter, state, now) and now or stepBefore(state[MOMENT], now, meter.stepUs)
  return begun + ceil(missing / meter.perStep) * meter.stepUs - now
end

function moves.begin(meter, state, now)
  if not isNew(meter, state, now) then return false end
  for slot = 1, SLOTS do state[slot] = 0 end
  state[LEVEL], state[MOMENT] = meter.capacity, now
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
  local isLast = moment >= at or moment >= last
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
  state[MOMENT] = refill.stepUs == meter.stepUs and old[MOMENT] or now
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

function moves.shift(_, state, us)
  state[MOMENT] = state[MOMENT] - us
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
` }

export const calendarWindowLua: LuaAlgorithm = { name: 'calendar-window', lua: `
local START, COUNT, STOP, SHUT = 1, 2, 3, 2 ^ 40
local LATE_US, MOST_DEBT = 4 * 3600000000, 100
local moves = {}

local function periodAt(meter, moment)
  local b1, b2, b3, b4 = meter.b1, meter.b2, meter.b3, meter.b4
  if moment >= b2 then
    if moment < b3 then return b2, b3 end
    if moment < b4 then return b3, b4 end
    local us = b4 - b3
    local start = b4 + floor((moment - b4) / us) * us
    return start, start + us
  end
  if moment >= b1 then return b1, b2 end
  local us = b2 - b1
  local start = b1 - ceil((b1 - moment) / us) * us
  return start, start + us
end

local function open(meter, state, now)
  local count, stop = state[COUNT], state[STOP]
  if count > 0 and now < stop and stop - now <= meter.longestUs then
    local start = state[START]
    if count < SHUT then return count, start, stop end
    if now >= start then return count - SHUT, start, stop end
    return huge, start, start
  end
  local start, ends = periodAt(meter, now)
  if count == 0 then return 0, start, ends end
  local goesOn = now < stop or (start < stop and ends - stop <= LATE_US)
  return goesOn and count % SHUT or 0, start, ends
end

function moves.delay(meter, state, now, cost)
  if cost > meter.count then return huge end
  if cost == 0 then return 0 end
  local used, _, stop = open(meter, state, now)
  return used + cost > meter.count and stop - now or 0
end

function moves.record(meter, state, now, cost, delay)
  local used, start, stop = open(meter, state, now)
  if used == huge then
    state[COUNT] = state[COUNT] + cost
    return
  end
  used = used + cost
  if now + delay >= stop then
    start, stop = periodAt(meter, now + delay)
    used = SHUT + cost
  end
  state[START], state[COUNT], state[STOP] = start, used, stop
end

moves.take = moves.record

function moves.overdraw(meter, state, now, cost)
  local used, start, stop = open(meter, state, now)
  local counted = min(cost, meter.count * MOST_DEBT - used)
  if counted > 0 then state[START], state[COUNT], state[STOP] = start, used + counted, stop end
end

function moves.refund(_, state, now, cost, moment, changedAt)
  if moment <= changedAt then return end
  if moment < state[START] or now >= state[STOP] then return end
  local count = state[COUNT]
  local shut = count >= SHUT and SHUT or 0
  state[COUNT] = shut + max(0, count - shut - cost)
end

function moves.remaining(meter, state, now)
  return max(0, meter.count - open(meter, state, now))
end

function moves.inherit(meter, old, _, now)
  local start, count, stop = old[START], old[COUNT], old[STOP]
  if count == 0 or now >= stop then return { 0, 0, 0 } end
  local isShut = count >= SHUT and now < start
  local from, ends = periodAt(meter, isShut and start or now)
  return { isShut and start or from, isShut and count or count % SHUT, ends }
end

function moves.perUs(meter)
  return meter.count / meter.longestUs
end

function moves.endsAt(meter, state, now)
  local _, _, stop = open(meter, state, now)
  return stop
end

function moves.idleAt(_, state)
  return state[COUNT] == 0 and 0 or state[STOP] + LATE_US
end

function moves.fullAt(_, state)
  return state[COUNT] == 0 and 0 or state[STOP]
end

moves.isCalendar = true

return moves
` }

export const concurrencyLua: LuaAlgorithm = { name: 'concurrency', lua: `
local moves = {}

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
` }

export const fixedWindowLua: LuaAlgorithm = { name: 'fixed-window', lua: `
local START, COUNT, FULL, MOST_DEBT = 1, 2, 2 ^ 40, 100
local moves = {}

local function windowOf(meter, now)
  return floor(now / meter.periodUs) * meter.periodUs
end

local function windowAt(meter, state, now)
  if state[COUNT] > 0 and now < state[START] + meter.periodUs then return state[START] end
  return meter.aligned == 1 and windowOf(meter, now) or now
end

local function usedIn(state, window)
  return window == state[START] and state[COUNT] or 0
end

local function isAhead(waits, window, now)
  return waits == 1 and window > now
end

function moves.delay(meter, state, now, cost)
  local count, periodUs, window, used = meter.count, meter.periodUs, state[START], state[COUNT]
  if cost > count then return huge end
  if cost == 0 then return 0 end
  if used == 0 or now >= window + periodUs then
    window, used = meter.aligned == 1 and now - now % periodUs or now, 0
  end
  if used + cost > count then return window + periodUs - now end
  return window > now and meter.waits == 1 and window - now or 0
end

function moves.take(meter, state, now, cost, delay)
  local periodUs, window, used = meter.periodUs, state[START], state[COUNT]
  if used == 0 or now >= window + periodUs then
    window, used = meter.aligned == 1 and now - now % periodUs or now, 0
  end
  if used + cost > meter.count then window, used = window + periodUs, 0 end
  local ahead = now + delay - window
  if ahead >= periodUs then window, used = window + floor(ahead / periodUs) * periodUs, 0 end
  used = used + cost
  state[START], state[COUNT] = window, used
  local isFull = used >= meter.count or (window > now and meter.waits == 1)
  return isFull and 0 or meter.count - used, window + periodUs
end

function moves.record(meter, state, now, cost, delay, carries)
  local window = windowAt(meter, state, now)
  local used = usedIn(state, window) % FULL
  if carries and used + cost > meter.count and cost <= meter.count then
    window, used = window + meter.periodUs, 0
  end
  local later = max(0, floor((now + delay - window) / meter.periodUs)) * meter.periodUs
  local isShut = window + later > now and meter.waits == 0
  state[START] = window + later
  state[COUNT] = (later > 0 and 0 or used) + cost + (isShut and FULL or 0)
end

function moves.overdraw(meter, state, now, cost)
  local window = windowAt(meter, state, now)
  local used = usedIn(state, window)
  local counted = min(cost, meter.count * MOST_DEBT - used)
  if counted > 0 then state[START], state[COUNT] = window, used + counted end
end

function moves.refund(meter, state, now, cost, moment, changedAt)
  if moment <= changedAt then return end
  local start = state[START]
  local ahead = isAhead(meter.waits, start, now) and ceil((start - now) / meter.periodUs) or 0
  if moment < start - ahead * meter.periodUs or now >= start + meter.periodUs then return end
  local left = state[COUNT] - cost
  local back = left > 0 and 0 or min(ahead, 1 + floor(-left / max(1, meter.count)))
  state[START] = start - back * meter.periodUs
  state[COUNT] = max(0, left + back * meter.count)
end

function moves.remaining(meter, state, now)
  local window, used = state[START], state[COUNT]
  if used == 0 or now >= window + meter.periodUs then return meter.count end
  if window > now and meter.waits == 1 or used >= meter.count then return 0 end
  return meter.count - used
end

function moves.inherit(meter, old, oldScale, now)
  local start, count = old[START], old[COUNT]
  local stop = start + oldScale[1]
  if count == 0 or now >= stop then return { 0, 0 } end
  local wasAhead = count > FULL / 2 or isAhead(oldScale[3], start, now)
  local isAlike = oldScale[1] == meter.periodUs and oldScale[2] == meter.aligned
  if isAlike and (not wasAhead or meter.waits == 1) then return { start, count } end
  if wasAhead then
    return { meter.aligned == 1 and windowOf(meter, stop - 1) or max(start, stop - meter.periodUs), FULL }
  end
  local latest = max(now, start)
  if meter.aligned == 1 then return { windowOf(meter, latest), count } end
  return { latest < start + meter.periodUs and start or latest, count }
end

function moves.shift(_, state, us)
  state[START] = state[START] - us
end

function moves.perUs(meter)
  return meter.count / meter.periodUs
end

function moves.endsAt(meter, state, now)
  local isOver = state[COUNT] == 0 or now >= state[START] + meter.periodUs
  return isOver and meter.aligned ~= 1 and 0 or windowAt(meter, state, now) + meter.periodUs
end

function moves.idleAt(meter, state)
  return state[COUNT] == 0 and 0 or state[START] + meter.periodUs
end

return moves
` }

export const slidingLogLua: LuaAlgorithm = { name: 'sliding-log', lua: `
local NEXT, RING, LARGEST, DROPPED = 1, 2, 1000, 1024
local moves = {}

local function place(meter, state, offset)
  local at = state[NEXT] % DROPPED + offset
  if at < 0 then at = at + meter.places elseif at >= meter.places then at = at - meter.places end
  return RING + at
end

local function remove(meter, state, now, moment)
  local leaves, offset = moment + meter.periodUs, meter.places - 1
  while offset >= 0 and state[place(meter, state, offset)] > leaves do offset = offset - 1 end
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

function moves.refund(meter, state, now, cost, moment)
  if moment + meter.periodUs <= now then return end
  for _ = 1, cost do
    if not remove(meter, state, now, moment) then return end
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
` }

export const slidingWindowLua: LuaAlgorithm = { name: 'sliding-window', lua: `
local HELD, CLOSED, LAST, CALLS, LEAD, SEGMENTS, MOST_DEBT = 1, 2, 3, 4, 5, 6, 100
local moves = {}

local function pack(meter, last, calls, leadUs)
  local steps = min(meter.leads - 1, ceil(leadUs / meter.stepUs))
  return ceil(last / meter.tickUs) % meter.ticks * (meter.room * meter.leads) + calls * meter.leads + steps
end

local function lastOf(meter, packed, newest)
  local tick = ceil(newest / meter.tickUs)
  local last = (tick - (tick - floor(packed / (meter.room * meter.leads))) % meter.ticks) * meter.tickUs
  return min(last, newest)
end

local function callsOf(meter, packed)
  return floor(packed / meter.leads) % meter.room
end

local function leadOf(meter, packed)
  local steps = packed % meter.leads
  return steps == meter.leads - 1 and huge or steps * meter.stepUs
end

local function endOf(state)
  return SEGMENTS + state[CLOSED]
end

local function drop(state, segment, count)
  local stop = endOf(state)
  for at = segment, stop - 1 do
    local from = at + count
    state[at] = from < stop and state[from] or 0
  end
  state[CLOSED] = state[CLOSED] - count
end

local function forget(meter, state, now)
  local closed, newest, gone = state[CLOSED], state[LAST], 0
  while gone < closed do
    local packed = state[SEGMENTS + gone]
    if lastOf(meter, packed, newest) + meter.periodUs > now then break end
    state[HELD] = state[HELD] - callsOf(meter, packed)
    gone = gone + 1
  end
  if gone > 0 then drop(state, SEGMENTS, gone) end
  if gone < closed or newest + meter.periodUs > now then return end
  state[HELD], state[LAST], state[CALLS], state[LEAD] = 0, 0, 0, 0
end

local function close(meter, state, last)
  state[endOf(state)] = pack(meter, last, state[CALLS], state[LEAD])
  state[CLOSED] = state[CLOSED] + 1
end

local function reopen(meter, state)
  local closed = max(0, state[CLOSED] - 1)
  local packed = state[SEGMENTS + closed]
  local calls = callsOf(meter, packed)
  state[LAST] = calls == 0 and 0 or lastOf(meter, packed, state[LAST])
  state[CALLS], state[LEAD] = calls, leadOf(meter, packed)
  state[SEGMENTS + closed], state[CLOSED] = 0, closed
end

local function bringForward(meter, state, moment)
  local earliest = moment - meter.spanUs
  for segment = SEGMENTS, endOf(state) - 1 do
    local packed = state[segment]
    if lastOf(meter, packed, state[LAST]) >= earliest then return end
    state[segment] = pack(meter, earliest, callsOf(meter, packed), leadOf(meter, packed))
  end
end

local function leftOf(meter, untilLast, calls, lead)
  if untilLast <= 0 then return calls end
  return max(0, calls - floor((lead + untilLast - 1) / meter.gapUs))
end

local function freeAt(meter, last, rest, lead)
  local leaves = last + meter.periodUs
  return min(leaves, leaves + lead - (rest + 1) * meter.gapUs)
end

local function isCut(meter, state, last, moment)
  if state[CLOSED] + 1 >= meter.segments or state[CALLS] >= meter.room then return false end
  return floor(last / meter.segmentUs) ~= floor(moment / meter.segmentUs)
end

local function isBetween(meter, state, moment, last)
  return state[CLOSED] + 1 < meter.segments and floor(last / meter.segmentUs) ~= floor(moment / meter.segmentUs)
end

function moves.delay(meter, state, now, cost)
  if cost > meter.count then return huge end
  if cost == 0 then return 0 end
  local excess = state[HELD] + cost - meter.count
  if excess <= 0 then return 0 end
  local before = 0
  for segment = SEGMENTS, endOf(state) - 1 do
    local packed = state[segment]
    local calls, last = callsOf(meter, packed), lastOf(meter, packed, state[LAST])
    if excess <= calls then
      return max(0, freeAt(meter, last, calls - excess, leadOf(meter, packed)) - now, before - now)
    end
    excess = excess - calls
    before = last + meter.periodUs
  end
  return max(0, freeAt(meter, state[LAST], state[CALLS] - excess, state[LEAD]) - now, before - now)
end

function moves.take(meter, state, now, cost, delay)
  forget(meter, state, now)
  local last, calls = state[LAST], state[CALLS]
  local moment = max(last, now + delay)
  if delay > meter.maxWaitUs then bringForward(meter, state, moment) end
  state[HELD], state[LAST] = state[HELD] + cost, moment
  if calls == 0 or isCut(meter, state, last, moment) then
    if calls > 0 then close(meter, state, max(last, moment - meter.spanUs)) end
    state[CALLS], state[LEAD] = cost, cost * meter.gapUs
  else
    state[CALLS], state[LEAD] = calls + cost, max(0, state[LEAD] - (moment - last)) + cost * meter.gapUs
  end
  return moves.remaining(meter, state, now), moment + meter.periodUs
end

function moves.overdraw(meter, state, now, cost)
  forget(meter, state, now)
  local counted = min(cost, meter.count * MOST_DEBT - state[HELD])
  if counted > 0 then moves.take(meter, state, now, counted, 0) end
end

function moves.insert(meter, state, now, cost, moment)
  forget(meter, state, now)
  local newest, stop, segment = state[LAST], endOf(state), SEGMENTS
  if moment >= newest then
    moves.take(meter, state, moment, cost, 0)
    return
  end
  while segment < stop and lastOf(meter, state[segment], newest) < moment do segment = segment + 1 end
  local isOpen, gapUs = segment == stop, meter.gapUs
  local last = isOpen and newest or lastOf(meter, state[segment], newest)
  local calls = isOpen and state[CALLS] or callsOf(meter, state[segment])
  local lead = isOpen and state[LEAD] or leadOf(meter, state[segment])
  state[HELD] = state[HELD] + cost
  if isBetween(meter, state, moment, last) and cost < meter.room then
    for at = stop, segment + 1, -1 do state[at] = state[at - 1] end
    state[segment], state[CLOSED] = pack(meter, max(moment, newest - meter.spanUs), cost, cost * gapUs), state[CLOSED] + 1
  elseif isOpen or calls + cost >= meter.room then
    local ahead = (state[CALLS] + cost) * gapUs - (newest - moment)
    state[LEAD] = max(state[LEAD], min(state[LEAD] + cost * gapUs, ahead))
    state[CALLS] = state[CALLS] + cost
  else
    local ahead = max(lead, min(lead + cost * gapUs, (calls + cost) * gapUs - (last - moment)))
    state[segment] = pack(meter, last, calls + cost, ahead)
  end
end

local function undo(meter, state, cost, moment)
  local newest, stop = state[LAST], endOf(state)
  local segment = newest == moment and stop or SEGMENTS
  while segment < stop and lastOf(meter, state[segment], newest) < moment do segment = segment + 1 end
  local isOpen = segment == stop
  local calls = isOpen and state[CALLS] or callsOf(meter, state[segment])
  local undone = min(cost, calls)
  state[HELD] = state[HELD] - undone
  if isOpen and undone == calls then
    reopen(meter, state)
  elseif isOpen then
    state[CALLS] = calls - undone
    if newest == moment then state[LEAD] = state[LEAD] - undone * meter.gapUs end
  elseif undone == calls then
    drop(state, segment, 1)
  else
    state[segment] = state[segment] - undone * meter.leads
  end
  return undone
end

function moves.refund(meter, state, now, cost, moment, changedAt)
  if moment <= changedAt or moment + meter.periodUs <= now then return end
  local left = cost
  while left > 0 and state[CALLS] > 0 and state[LAST] >= moment do left = left - undo(meter, state, left, moment) end
end

function moves.remaining(meter, state, now)
  local free = meter.count - state[HELD]
  for segment = SEGMENTS, endOf(state) - 1 do
    local packed = state[segment]
    local calls, untilLast = callsOf(meter, packed), lastOf(meter, packed, state[LAST]) + meter.periodUs - now
    if untilLast > calls * meter.gapUs then return max(0, free) end
    local left = leftOf(meter, untilLast, calls, leadOf(meter, packed))
    free = free + left
    if left < calls then return max(0, free) end
  end
  return max(0, free + leftOf(meter, state[LAST] + meter.periodUs - now, state[CALLS], state[LEAD]))
end

function moves.inherit(meter, old, oldScale, now)
  local previous = { tickUs = oldScale[3], ticks = oldScale[4], room = oldScale[5], stepUs = oldScale[6], leads = oldScale[7] }
  local newest, open, periodUs = old[LAST], old[CLOSED], min(oldScale[1], meter.periodUs)
  local state, first, merged = {}, 0, 0
  for slot = 1, meter.slots do state[slot] = 0 end
  local function lastAt(place)
    return place == open and newest or lastOf(previous, old[SEGMENTS + place], newest)
  end
  while first <= open and lastAt(first) + periodUs <= now do first = first + 1 end
  local surplus = max(0, open + 1 - first - meter.segments)
  for place = first, open do
    local isOpen = place == open
    local calls = isOpen and old[CALLS] or callsOf(previous, old[SEGMENTS + place])
    local lead = isOpen and old[LEAD] or leadOf(previous, old[SEGMENTS + place])
    merged = merged + calls
    state[HELD] = state[HELD] + calls
    if place >= first + surplus and (isOpen or merged < meter.room) then
      state[LAST], state[CALLS] = newest, merged
      state[LEAD] = oldScale[2] == meter.gapUs and merged == calls and lead or huge
      if not isOpen then close(meter, state, max(lastAt(place), newest - meter.spanUs)) end
      merged = 0
    end
  end
  return state
end

function moves.shift(meter, state, us)
  local ticks = floor(us / meter.tickUs) * meter.tickUs
  state[LAST] = state[LAST] - ticks
  for segment = SEGMENTS, endOf(state) - 1 do
    local packed, inTick = state[segment], meter.room * meter.leads
    state[segment] = packed % inTick + (floor(packed / inTick) - ticks / meter.tickUs) % meter.ticks * inTick
  end
end

function moves.perUs(meter)
  return meter.count / meter.periodUs
end

function moves.idleAt(meter, state)
  return state[CALLS] == 0 and 0 or state[LAST] + meter.periodUs
end

return moves
` }

export const smoothLua: LuaAlgorithm = { name: 'smooth', lua: `
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
` }
