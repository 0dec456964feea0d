-- The moves of calendar-window.ts. b1 to b4 are the beginnings of four periods, as the process knows them.
local START, COUNT, STOP, SHUT = 1, 2, 3, 2 ^ 40
local LATE_US, MOST_DEBT = 4 * 3600000000, 100
local moves = {}

-- The period of a moment. Beyond those that the process has sent, which are around the clock of Redis as the process knows it, periods
-- are taken to be as long as the next one that is known.
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

-- What is used in the window of a key, and the window; huge if no call passes before it ends. A window that was reached by a clock
-- that was wrong, and set back since, may be years away: what is used in it is used in the period that is now.
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

-- A process with other time zone data may see the end of the period later.
function moves.idleAt(_, state)
  return state[COUNT] == 0 and 0 or state[STOP] + LATE_US
end

function moves.fullAt(_, state)
  return state[COUNT] == 0 and 0 or state[STOP]
end

-- Its moments are those of a calendar: they stay when the clock is set back.
moves.isCalendar = true

return moves
