-- The moves of sliding-window.ts and packing.ts, number for number.
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
    -- none of them can have left, and then none of the later ones
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
  -- closed segments are dated by the newest one, in ticks
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
