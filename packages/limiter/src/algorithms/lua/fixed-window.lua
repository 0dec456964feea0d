-- The moves of fixed-window.ts.
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
