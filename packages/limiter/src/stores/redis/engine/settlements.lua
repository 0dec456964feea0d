-- Reservations of calls: amounts that were charged in advance, and are settled when it is known what was used.
--
-- The charge itself is counted like any other. A ledger lists the reservations that are not settled yet: of each, packed, the id, when it
-- ends, the amount, and the moment that it was counted at; and until when there may be others, for which there was no room; when the
-- first one ends, and the last. What ends unsettled is refunded as of its end.

local MOST_RESERVED, RESERVED_BYTES, LONGEST_HOLD = 1024, 32, 86400000000
-- So long it is known that a reservation was settled after its end.
local SETTLED_US = 60000000

function readReserved(list)
  if not list then return false end
  local isList = type(list) == 'table' and areNumbers(list, 1, 3) and type(list[4]) == 'string'
  if not isList or #list[4] % RESERVED_BYTES > 0 or #list[4] > MOST_RESERVED * RESERVED_BYTES then
    ignored = ignored + 1
    return false
  end
  -- the clock may have stepped back
  local latest = now + LONGEST_HOLD
  return { unlisted = min(list[1], latest), first = list[2], last = min(list[3], latest), text = list[4] }
end

function reservedText(list)
  if not list or (list.text == '' and list.unlisted <= now) then return false end
  return { list.unlisted, list.first, list.last, list.text }
end

-- Lists an amount that was just counted.
local function addReserved(ledger, id, endsAt, amount, moment)
  local list = ledger.reserved or { text = '', unlisted = 0, first = huge, last = 0 }
  ledger.reserved, ledger.idleAt = list, false
  list.last = max(list.last, endsAt)
  if #list.text >= MOST_RESERVED * RESERVED_BYTES then
    list.unlisted = max(list.unlisted, endsAt)
    return
  end
  list.text = list.text .. pack('<dddd', id, endsAt, amount, moment)
  list.first = min(list.first, endsAt)
end

-- Takes a reservation off the list; returns its amount, nothing if it is not there.
local function takeReserved(list, id)
  local name = pack('<d', id)
  local at = string.find(list.text, name, 1, true)
  -- another number may have the same bytes
  while at and at % RESERVED_BYTES ~= 1 do at = string.find(list.text, name, at + 1, true) end
  if not at then return nil end
  local _, _, amount = fetch('<ddd', list.text, at)
  if amount > 0 then
    list.text = string.sub(list.text, 1, at - 1) .. string.sub(list.text, at + RESERVED_BYTES)
  end
  return amount
end

local function refundAll(ledger, rule, at, amount, moment)
  for _, entry in ipairs(ledger.entries) do
    local since = countsSince(rule, entry)
    for l, level in ipairs(entry.limit.levels) do
      entry.limit.moves[l].refund(level, entry.states[l], max(at, since), amount, moment, since)
    end
  end
  ledger.isChanged, ledger.idleAt = true, false
end

-- Refunds what was not settled in time, each as of its end; before anything else is done with a caller.
function releaseEnded(ledger, rule)
  local list = ledger.reserved
  if list.first > now then return end
  local ended, kept = {}, {}
  list.first = huge
  for at = 1, #list.text, RESERVED_BYTES do
    local _, endsAt, amount, moment = fetch('<dddd', list.text, at)
    endsAt = min(endsAt, now + LONGEST_HOLD)
    if endsAt <= now then
      ended[#ended + 1] = { at = at, endsAt = endsAt, amount = amount, moment = moment }
    else
      kept[#kept + 1] = string.sub(list.text, at, at + RESERVED_BYTES - 1)
      list.first = min(list.first, endsAt)
    end
  end
  list.text = table.concat(kept)
  table.sort(ended, function(a, b) return a.endsAt < b.endsAt or (a.endsAt == b.endsAt and a.at < b.at) end)
  for _, one in ipairs(ended) do
    if one.amount > 0 then refundAll(ledger, rule, one.endsAt, one.amount, one.moment) end
  end
end

-- Counts what was used beyond a reservation: beyond the limit, or up to it.
local function overdraw(ledger, rule, cost, isDebt)
  local own, amount = ownEntry(ledger, rule), cost
  if not isDebt then
    for l, level in ipairs(own.limit.levels) do amount = min(amount, own.limit.moves[l].remaining(level, own.states[l], now)) end
    if amount <= 0 then return end
  end
  use(ledger, rule, own)
  for _, entry in ipairs(ledger.entries) do
    for l, level in ipairs(entry.limit.levels) do
      local moves, state = entry.limit.moves[l], entry.states[l]
      if isDebt and moves.overdraw then
        moves.overdraw(level, state, now, amount)
      elseif entry == own then
        local room = min(amount, moves.remaining(level, state, now))
        if room > 0 then moves.take(level, state, now, room, 0) end
      else
        local carries = isFaster(level, moves, own.limit) and not (rule.stated and level.windowUs)
        recordPart(level, moves, state, carries, amount, 0)
      end
    end
  end
end

-- Settles a reservation, once. The row has its id, what was reserved, the moment that it was counted at and the wait before that, what
-- was used, when it ends, and whether more than was reserved is counted beyond the limit. One that has ended was refunded: all that
-- was used is counted. An id of 0 is that of no reservation.
local function settle(ledger, rule, row)
  local id, amount, moment, wait, actual, endsAt = row[4], row[5], row[6], row[7], row[8], row[9]
  local list = ledger.reserved
  local found = list and id > 0 and takeReserved(list, id)
  if found == 0 or moment - wait < ledger.since then return end
  if not found and endsAt > now and not (list and list.unlisted > now) then return end
  if not found and endsAt <= now then
    amount = 0
    if id > 0 then addReserved(ledger, id, now + SETTLED_US, 0, moment) end
  end
  ledger.isChanged, ledger.idleAt = true, false
  continueChanged(ledger, rule)
  if actual < amount then
    refundAll(ledger, rule, now, amount - actual, moment)
  elseif actual > amount then
    overdraw(ledger, rule, actual - amount, row[10] == 1)
  end
end
