// Generated from the .lua files beside it by npm run lua: do not edit.

export const decide: string = `

local HELD_US = 600000000
local RESET_US = 60000000

local charges = {}

local function readCharges(rules, row)
  local isReserving = row[1] == RESERVE
  local first, width = isReserving and 4 or 3, isReserving and 3 or 2
  local size = (#row - first + 1) / width
  for c = 1, size do
    local at = first + (c - 1) * width
    local charge, code = charges[c] or { delays = {} }, row[at]
    local isWaiting = code % 2
    charges[c] = charge
    charge.rule, charge.cost, charge.mayWait = rules[(code - isWaiting) / 2], row[at + 1], isWaiting == 1
    charge.holdUs = isReserving and row[at + 2] or 0
  end
  return size
end

local function recordInOthers(rule, place, cost, wait, counts, isCounting)
  local idleAt, isChanged, states = 0, counts, rule.partition.states
  for l, level in ipairs(rule.all) do
    local moves, state = rule.allMoves[l], states[l][place]
    if not isOwn(rule, l) then
      if counts then
        record(rule, level, moves, state, cost, wait)
      elseif isCounting and moves.begin and moves.begin(level, state, now) then
        isChanged = true
      end
      idleAt = max(idleAt, moves.idleAt(level, state))
    end
  end
  return idleAt, isChanged
end

local function decide(rules, row, isCounting)
  local size, asked, moment, answer, last = readCharges(rules, row), charges, now, reply, n
  for _ = 1, row[2] do
    local allowed = isCounting
    for c = 1, size do
      local charge = asked[c]
      local rule, cost, delays = charge.rule, charge.cost, charge.delays
      local levels, moves, partition, states = rule.levels, rule.moves, rule.partition, rule.states
      local place, wait, counts = nextCaller(rule, partition), 0, cost > 0
      local endings = partition.endings and partition.endings[place]
      for l = 1, #levels do
        local level, state = levels[l], states[l][place]
        local delay = endings and delayBeside(endings, moves[l], level, state, cost, 0) or moves[l].delay(level, state, moment, cost)
        delays[l] = delay
        if delay > 0 then
          if delay > wait then wait = delay end
          if not charge.mayWait or delay > (level.maxWaitUs or 0) then
            counts = false
            if not rule.shadow then allowed = false end
          end
        end
      end
      charge.place, charge.wait, charge.counts, charge.held = place, wait, counts, endings and heldIn(endings) or 0
    end
    for c = 1, size do
      local charge = asked[c]
      local rule, cost, place, delays = charge.rule, charge.cost, charge.place, charge.delays
      local levels, allMoves, states = rule.levels, rule.moves, rule.states
      local counts = allowed and charge.counts
      local idleAt, isChanged = 0, counts
      if rule.hasOthers then
        idleAt, isChanged = recordInOthers(rule, place, cost, charge.wait, counts, isCounting and cost > 0)
      end
      for l = 1, #levels do
        local level, moves, state, delay = levels[l], allMoves[l], states[l][place], delays[l]
        local remaining, levelIdleAt, fullAt
        if counts then
          remaining, levelIdleAt, fullAt = moves.take(level, state, moment, cost, charge.wait)
        elseif isCounting and cost > 0 and moves.begin and moves.begin(level, state, moment) then
          isChanged = true
        end
        if not levelIdleAt then
          remaining, levelIdleAt = moves.remaining(level, state, moment), moves.idleAt(level, state)
          fullAt = moves.fullAt and moves.fullAt(level, state)
        end
        if charge.held > 0 then remaining = max(0, remaining - charge.held) end
        if levelIdleAt > idleAt then idleAt = levelIdleAt end
        if delay > 0 then
          last = last + 1
          answer[last] = -min(delay + 1, NEVER)
        end
        local reset = (fullAt or levelIdleAt) - moment
        if reset < 0 then reset = 0 end
        last = last + 1
        if reset < RESETS and remaining < REMAINING and not level.needsRelease then
          answer[last] = remaining * RESETS + reset
        else
          if reset > NEVER or (level.needsRelease and reset > 0) then reset = -1 end
          answer[last], answer[last + 1], answer[last + 2] = -1, remaining, reset
          last = last + 2
        end
      end
      if isChanged then rule.partition.idleAts[place] = idleAt end
      if counts and charge.holdUs > 0 then
        addReserved(rule.partition, place, row[3], moment + charge.holdUs, cost, moment + charge.wait)
      end
    end
  end
  return last
end

local function continueWindow(level, moves, state, windowUs, taken, endsAt)
  local used = (level.most or moves.remaining(level, blank(level.slots), now)) - moves.remaining(level, state, now)
  if used > 0 then endsAt = min(endsAt, moves.idleAt(level, state)) end
  for slot = 1, level.slots do state[slot] = 0 end
  moves.take(level, state, endsAt - windowUs, used + taken, 0)
end

local function insertCalls(level, moves, state, row, at, most)
  local windowUs, due, inserted, leavesAfterUs = row[at], {}, 0, row[at]
  for i = row[at + 1], 0, -1 do
    local place = at + i * 3 - 1
    local afterUs, known, missing = row[place], row[place + 1], row[place + 2]
    if i == 0 then afterUs, known, missing = 0, row[at - 2], row[at - 1] end
    local used = most - moves.remaining(level, state, now + afterUs)
    local more = min(most, max(used, known) + missing) - used
    if more > inserted then
      due[#due + 1] = { now + min(windowUs, leavesAfterUs) - windowUs, more - inserted }
      inserted = more
    end
    leavesAfterUs = afterUs
  end
  for i = #due, 1, -1 do moves.insert(level, state, now, due[i][2], due[i][1]) end
end

local function catchUp(rule, row)
  local place, missed, states, at = nextCaller(rule, rule.partition), 0, rule.partition.states, 4
  local endings = rule.partition.endings and rule.partition.endings[place]
  for l, level in ipairs(rule.levels) do
    local moves, state = rule.moves[l], states[rule.at + l][place]
    local known, missing, windowUs, moments = row[at], row[at + 1], row[at + 2], row[at + 3]
    local most = level.most or moves.remaining(level, blank(level.slots), now)
    local room = moves.remaining(level, state, now)
    if endings then room = max(0, room - heldIn(endings)) end
    local due = max(0, known + room - most) + missing
    if level.setsMoment then due, room = known, known end
    local taken = min(due, room)
    if moments > 0 and moves.insert then
      insertCalls(level, moves, state, row, at + 2, most)
    elseif taken > 0 and moments > 0 and moves.endsAt and moves.endsAt(level, blank(level.slots), now) == 0 then
      continueWindow(level, moves, state, windowUs, taken, now + row[at + 1 + moments * 3])
    elseif taken > 0 then
      moves.take(level, state, now, taken, 0)
    end
    at, missed = at + 4 + moments * 3, max(missed, missing)
    n = n + 1
    reply[n] = due - taken
  end
  for l, level in ipairs(missed > 0 and rule.all or {}) do
    if not isOwn(rule, l) then record(rule, level, rule.allMoves[l], states[l][place], missed, 0) end
  end
  changeAmended(rule, place)
end

local function isForgotten(partition, field, chargedAt)
  if chargedAt > partition.resetAt then return false end
  local hashes, mark = shardsWith(partition, field), '!' .. field
  table.insert(hashes, partition.current)
  table.insert(hashes, partition.previous)
  for _, hash in ipairs(hashes) do
    local raw = readFields(hash, mark)[1]
    if raw and #raw == 8 and chargedAt <= fetch('<d', raw) then return true end
  end
  local resetAt = partition.resets and partition.resets[field]
  return resetAt and chargedAt <= resetAt or false
end

local function reset(rule)
  local partition, place, idleAt = rule.partition, nextCaller(rule, rule.partition), now + RESET_US
  if partition.about == '' and not next(partition.idleAts) then return end
  for l, level in ipairs(rule.all) do
    local state = partition.states[l][place]
    idleAt = max(idleAt, rule.allMoves[l].idleAt(level, state), level.needsRelease and now + HELD_US or 0)
    partition.states[l][place] = blank(level.slots)
  end
  partition.idleAts[place] = 0
  if partition.reserved then partition.reserved[place] = nil end
  partition.resets = partition.resets or {}
  partition.resets[args[partition.offset + place]] = now
  partition.resetAt, partition.isChanged, partition.last = now, true, max(partition.last, idleAt)
end

local function amend(rule, row, move)
  local partition, amount, moment, wait = rule.partition, row[4], row[5], row[6]
  local place = nextCaller(rule, partition)
  local field = args[partition.offset + place]
  if move == 'refund' and isForgotten(partition, field, moment - wait) then return end
  for l, level in ipairs(rule.all) do
    local amending = rule.allMoves[l][move]
    if amending then amending(level, partition.states[l][place], now, amount, moment, level.start or rule.since) end
  end
  changeAmended(rule, place)
end

local function settle(rule, row)
  local partition, id, amount, moment, wait, actual, endsAt = rule.partition, row[4], row[5], row[6], row[7], row[8], row[9]
  local place = nextCaller(rule, partition)
  local field, list = args[partition.offset + place], partition.reserved and partition.reserved[place]
  local found = list and id > 0 and takeReserved(list, id)
  if found == 0 or isForgotten(partition, field, moment - wait) then return end
  if not found and endsAt > now and not (list and list.unlisted > now) then return end
  if not found and endsAt <= now then
    amount = 0
    if id > 0 then addReserved(partition, place, id, now + SETTLED_US, 0, moment) end
  end
  if actual < amount then
    refundAll(rule, place, now, amount - actual, moment)
  elseif actual > amount then
    overdraw(rule, place, actual - amount, row[10] == 1)
  end
  changeAmended(rule, place)
end

local function lease(rule, row)
  local partition = rule.partition
  local place, name = nextCaller(rule, partition), keys[#keys - request.holders + row[4]]
  partition.endings = partition.endings or {}
  local endings = partition.endings[place] or {}
  partition.endings[place] = endings
  local sequence, amount, endsAt = readReservation(name)
  local retryUs, newest = 0, 0
  if not sequence or sequence < row[5] then
    newest = newestOf(rule, place)
    amount, endsAt, retryUs = renew(rule, place, endings, row, amount or 0, endsAt)
    call('SET', name, pack('<ddd', row[5], amount, endsAt), 'PX', RESERVATION_MS)
    changeAmended(rule, place)
  elseif sequence > row[5] then
    amount = 0
  end
  local held = heldIn(endings)
  for l, level in ipairs(rule.levels) do
    local moves, state = rule.moves[l], rule.states[l][place]
    local fullAt = moves.fullAt and moves.fullAt(level, state) or moves.idleAt(level, state)
    reply[n + 1], reply[n + 2] = max(0, moves.remaining(level, state, now) - held), min(max(0, fullAt - now), NEVER)
    reply[n + 3] = min(delayBeside(endings, moves, level, state, 1, amount), NEVER)
    n = n + 3
  end
  local lastsUs = amount == 0 and 0 or max(0, min(LEASE_US, floor((endsAt - now) * (1 - CLOCK_MARGIN))))
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4], reply[n + 5] = amount, lastsUs, retryUs, newest, ignored
  n, ignored = n + 5, 0
end
`

export const moves: string = `
local function scaleIn(shape)
  local scale = {}
  for number in shape:gmatch('%S+') do scale[#scale + 1] = tonumber(number) end
  return scale, table.remove(scale, 1)
end

local function periodOf(level)
  return scaleIn(level.shape)[1]
end

local function algorithmOf(level)
  return string.match(level.shape, '=(.*)\$')
end

local made = {}

local function unknownAlgorithm()
  local none = function() end
  return {
    take = none,
    refund = none,
    idleAt = function(level) return now + (periodOf(level) or 0) end,
  }
end

local function movesOf(level)
  local moves = made[level.name]
  if not moves then
    moves = (makers[level.name] or unknownAlgorithm)()
    made[level.name] = moves
  end
  return moves
end

local function movesOfAll(levels)
  local all = {}
  for l = 1, #levels do all[l] = movesOf(levels[l]) end
  return all
end
`

export const partitions: string = `

local function readAbout(partition, about)
  partition.begun, partition.lasts, partition.previousLasts, partition.resetAt, partition.mark, partition.since,
    partition.version, partition.createdAt, partition.saved, partition.previousBegun, partition.code, partition.seed =
    fetch(ABOUT, about)
  partition.about = about
end

local function beginPartition(partition)
  local about = readFields(partition.previous, '@')[1]
  partition.isKnown, partition.isSpelled, partition.about = false, false, ''
  partition.begun, partition.lasts, partition.previousLasts, partition.resetAt = now, 0, 0, -1
  partition.mark, partition.since, partition.version, partition.saved = 0, 0, 0, now
  partition.previousBegun, partition.code, partition.seed = 0, 0, 0
  if about and #about >= ABOUT_BYTES then
    readAbout(partition, about)
    local begun, lasts, code, seed = partition.begun, partition.lasts, partition.code, partition.seed
    partition.begun, partition.lasts, partition.previousLasts = now, 0, lasts
    partition.previousBegun, partition.code, partition.seed = 0, 0, 0
    if lasts > now then
      local from, to, _, _, bank = levelsIn(code)
      partition.previousBegun, partition.seed = begun, seed
      partition.code = codeOf(floor(code / 4096) % 8, from, to, 1 - bank)
    end
    if now < partition.saved then stepBack(partition) end
  else
    local time = call('TIME')
    partition.createdAt = time[1] * SECOND + time[2]
  end
  partition.isPreviousKnown = partition.previousLasts <= now
  if about and partition.isPreviousKnown then call('UNLINK', partition.previous) end
end

local function rotate(partition)
  local from, to, _, _, bank = levelsIn(partition.code)
  local level = to > 0 and nextLevel(partition, to, bank) or 0
  if level ~= to then
    local code = partition.code + 4096 * (level - floor(partition.code / 4096) % 8)
    local head, rest = string.sub(partition.about, 1, ABOUT_BYTES - 16), string.sub(partition.about, ABOUT_BYTES - 7)
    call('HSET', partition.current, '@', head .. pack('<d', code) .. rest)
  end
  if partition.version > 0 then levelsOf(partition, partition.version) end
  call('UNLINK', partition.previous)
  local doesMatter = partition.lasts > now
  if doesMatter then call('RENAME', partition.current, partition.previous) else call('UNLINK', partition.current) end
  partition.code = codeOf(level, from, to, 1 - bank)
  partition.previousBegun, partition.begun = partition.begun, now
  partition.previousLasts, partition.lasts = partition.lasts, 0
  partition.isKnown, partition.isSpelled = false, false
  if to > 0 and not doesMatter then
    partition.code, partition.seed = 0, 0
    return true
  end
  return level ~= to
end

local MAX_KEPT = 256
local kept, keptCount = {}, 0

local function partitionOf(current, previous)
  local partition = kept[current]
  if partition and partition.isSettled then return partition end
  if not partition then
    if keptCount == MAX_KEPT then kept, keptCount = {}, 0 end
    keptCount = keptCount + 1
  end
  partition = { current = current, previous = previous, about = '', isKnown = true, isSpelled = true, idleAts = {} }
  kept[current] = partition
  return partition
end

local function openPartition(partition, layout, offset, size)
  partition.isSettled, partition.layout, partition.offset, partition.size, partition.served = false, layout, offset, size, 0
  partition.states, partition.first, partition.last, partition.isPreviousKnown = false, false, 0, false
  partition.endings, partition.reserved = false, false
  local raws
  if layout and floor(layout.code / 8) % 8 > 0 then
    raws = readFields(partition.current, '@')
  else
    raws = readFields(partition.current, '@', unpack(args, offset + 1, offset + size))
  end
  local about = raws[1]
  partition.raws = raws
  if about and #about >= ABOUT_BYTES then
    if about ~= partition.about then readAbout(partition, about) end
    if now < partition.saved then stepBack(partition) end
  else
    if about then
      call('UNLINK', partition.current)
      partition.raws = {}
    end
    beginPartition(partition)
  end
  local code = partition.code
  if code ~= 0 or layout then
    if code % 4096 ~= (layout and layout.code or 0) or (layout and layout.seed ~= partition.seed) then return true end
  end
  if partition.isKnown and now >= partition.previousLasts then
    partition.isPreviousKnown = true
    local age = now - partition.begun
    if age < 0 or (age >= SECOND and age >= partition.lasts - now) then return rotate(partition) end
  end
  return false
end

local function readPrevious(partition)
  local offset, raws, places, wanted = partition.offset, partition.raws, {}, {}
  for place = 1, partition.size do
    if not raws[place + 1] then
      places[#places + 1], wanted[#wanted + 1] = place, args[offset + place]
    end
  end
  partition.isPreviousKnown = true
  if partition.layout then return readOlderShards(partition, places) end
  local found = readFields(partition.previous, unpack(wanted))
  for i, place in ipairs(places) do raws[place + 1] = found[i] end
end

local function nextCaller(rule, partition)
  local place = partition.served + 1
  partition.served = place
  if request.same then
    local field, first = args[partition.offset + place], partition.first or {}
    partition.first = first
    if first[field] then return first[field] end
    first[field] = place
  end
  local raw, states, widths = partition.raws[place + 1], partition.states, rule.widths
  if not (raw or partition.isPreviousKnown) then
    readPrevious(partition)
    raw = partition.raws[place + 1]
  end
  local format = raw and widths.formats[#raw]
  if format then
    local state = { fetch(format, raw) }
    local count = #raw / 8
    if state[count] == partition.version then
      state[count] = nil
      if count <= widths.slots then
        for slot = count, widths.slots do state[slot] = 0 end
      end
      states[1][place] = state
      return place
    end
  end
  local endings, reserved
  if raw then
    reserved, raw = reservedIn(raw)
    endings, raw = endingsIn(raw)
  end
  local stored = raw and storedStates(rule, raw)
  for l = 1, #rule.all do states[l][place] = stored and stored[l] or blank(rule.all[l].slots) end
  if endings then
    partition.endings = partition.endings or {}
    partition.endings[place] = endings
    bookEnded(rule, place, endings)
  end
  if reserved then
    partition.reserved = partition.reserved or {}
    partition.reserved[place] = reserved
    releaseEnded(rule, place, reserved)
  end
  return place
end

local function changeAmended(rule, place)
  local idleAt, states = 0, rule.partition.states
  for l, level in ipairs(rule.all) do idleAt = max(idleAt, rule.allMoves[l].idleAt(level, states[l][place])) end
  rule.partition.idleAts[place] = idleAt
end

local function forget(partition, fields)
  for _, field in ipairs(fields) do
    for _, shard in ipairs(shardsWith(partition, field)) do call('HDEL', shard, field) end
  end
  call('HDEL', partition.current, unpack(fields))
  if partition.previousLasts > now then call('HDEL', partition.previous, unpack(fields)) end
end

local written = {}

local function collect(partition)
  local all, widths, states, idleAts = partition.all, partition.widths, partition.states, partition.idleAts
  local offset, version, count, last, gone = partition.offset, partition.version, 0, partition.last, nil
  local held, reserved = partition.endings, partition.reserved
  for place = 1, partition.served do
    local idleAt, endings = idleAts[place], held and held[place]
    idleAts[place] = nil
    if idleAt and endings and endings[1] then idleAt = idleWith(partition, place, endings) end
    local list = reserved and reserved[place]
    if idleAt and list then idleAt = max(idleAt, list.last) end
    if idleAt and idleAt > now then
      written[count + 1] = args[offset + place]
      count = count + 2
      written[count] = encode(states, place, all, widths, version)
      if endings then written[count] = written[count] .. endingsText(endings) end
      if list then written[count] = written[count] .. reservedText(list) end
      if idleAt > last then last = idleAt end
    elseif idleAt then
      gone = gone or {}
      gone[#gone + 1] = args[offset + place]
    end
  end
  if partition.resets then
    for field, moment in pairs(partition.resets) do
      written[count + 1], written[count + 2] = '!' .. field, pack('<d', moment)
      count = count + 2
    end
  end
  partition.last = last
  return count, gone
end

local function savePartition(partition)
  local count, gone = collect(partition)
  local lastsLonger = partition.last > partition.lasts
  if lastsLonger then partition.lasts = now + min(max((partition.last - now) * 1.25, SECOND), LONGEST) end
  local isPlain = not (partition.isChanged or partition.lists or partition.untils or partition.layout)
  if lastsLonger or partition.isChanged or (count > 0 and now - partition.saved >= SECOND) then
    local versions = isPlain and string.sub(partition.about, ABOUT_BYTES + 1) or spell(partition)
    partition.saved = now
    partition.about = pack(
      ABOUT, partition.begun, partition.lasts, partition.previousLasts, partition.resetAt, partition.mark, partition.since,
      partition.version, partition.createdAt, partition.saved, partition.previousBegun, partition.code, partition.seed
    ) .. versions
    written[count + 1], written[count + 2] = '@', partition.about
    count = count + 2
  end
  if count > 0 and partition.isSpread then
    saveShards(partition, written, count)
  elseif count > 0 then
    local added = call('HSET', partition.current, unpack(written, 1, count))
    if added > 0 and call('HLEN', partition.current) > (request.most or PARTITION_CALLERS) then
      spreadFurther(partition.current, partition.about)
    end
  end
  if lastsLonger then expire(partition.current, partition.lasts) end
  if gone then forget(partition, gone) end
  partition.isSettled = isPlain and partition.isKnown
end
`

export const reservations: string = `

local MOST_ENDINGS, RESERVATION_MS, LATEST_US = 64, 3000, LEASE_US + 2 * RECLAIM_US
local MOST_PIECES = 64
local ignored = 0

local function isCount(number)
  return number >= 0 and number == floor(number) and number < NEVER
end

local function endingsIn(raw)
  local last = #raw >= 40 and fetch('<d', raw, #raw - 7) or 0
  local count = last < 0 and -last or 0
  if count == 0 then return nil, raw end
  local size, endings = #raw - 8 - count * 24, {}
  if not isCount(count) or count > MOST_ENDINGS or size < 8 then
    ignored = ignored + 1
    return nil, ''
  end
  for e = 1, count do
    local endsAt, amount, holders = fetch('<ddd', raw, size + e * 24 - 23)
    if endsAt > 0 and isCount(amount) and isCount(holders) then
      endings[#endings + 1] = { endsAt = min(endsAt, now + LATEST_US), amount = amount, holders = holders }
    else
      ignored = ignored + 1
    end
  end
  return endings, string.sub(raw, 1, size)
end

local function endingsText(endings)
  if not (endings and endings[1]) then return '' end
  local texts = {}
  for e, ending in ipairs(endings) do texts[e] = pack('<ddd', ending.endsAt, ending.amount, ending.holders) end
  return table.concat(texts) .. pack('<d', -#endings)
end

local function heldIn(endings)
  local held, holders = 0, 0
  for e = 1, #endings do held, holders = held + endings[e].amount, holders + endings[e].holders end
  return held, holders
end

local function bookIn(level, moves, state, moment, cost)
  if moves.record then
    moves.record(level, state, moment, cost, 0, false)
  else
    moves.take(level, state, moment, cost, 0)
  end
end

local function stateCopy(state)
  local copy = {}
  for name, number in pairs(state) do copy[name] = number end
  return copy
end

local function delayWith(held, moves, level, state, cost)
  local delay = moves.delay(level, state, now, cost + held)
  if delay < huge or held == 0 then return delay end
  local copy = stateCopy(state)
  bookIn(level, moves, copy, now, held)
  return moves.delay(level, copy, now, cost)
end

local function delayBeside(endings, moves, level, state, cost, own)
  local held = heldIn(endings)
  if held == 0 or cost == 0 then return moves.delay(level, state, now, cost) end
  local delay = delayWith(held, moves, level, state, cost)
  if delay == 0 or own == held then return delay end
  return min(delay, max(delayWith(own, moves, level, state, cost), RETURNED_US))
end

local function newestOf(rule, place)
  local newest = 0
  for l, level in ipairs(rule.levels) do
    local idleAt = level.windowUs and rule.moves[l].idleAt(level, rule.states[l][place]) or 0
    if idleAt > now then newest = max(newest, idleAt - level.windowUs) end
  end
  return newest
end

local function book(rule, place, moment, cost)
  if cost == 0 then return end
  for l, level in ipairs(rule.all) do
    local moves, state = rule.allMoves[l], rule.partition.states[l][place]
    if isOwn(rule, l) then
      bookIn(level, moves, state, moment, cost)
    else
      local most = level.most or moves.remaining and moves.remaining(level, blank(level.slots), now) or cost
      local left, piece = cost, max(1, ceil(cost / MOST_PIECES), most)
      while left > 0 do
        record(rule, level, moves, state, min(left, piece), 0)
        left = left - piece
      end
    end
  end
end

local function bookEnded(rule, place, endings)
  while endings[1] and endings[1].endsAt <= now do
    book(rule, place, endings[1].endsAt - 1, endings[1].amount)
    table.remove(endings, 1)
  end
end

local function idleWith(partition, place, endings)
  local idleAt = 0
  for l, level in ipairs(partition.all) do
    local copy, moves = stateCopy(partition.states[l][place]), movesOf(level)
    for _, ending in ipairs(endings) do
      if ending.amount > 0 then bookIn(level, moves, copy, ending.endsAt - 1, ending.amount) end
      idleAt = max(idleAt, ending.endsAt)
    end
    idleAt = max(idleAt, moves.idleAt(level, copy))
  end
  return idleAt
end

local function readReservation(name)
  local raw = redis.pcall('GET', name)
  if not raw then return nil end
  if type(raw) == 'string' and #raw == 24 then
    local sequence, amount, endsAt = fetch('<ddd', raw)
    if isCount(sequence) and isCount(amount) and endsAt >= 0 then
      if endsAt <= now then return nil end
      return sequence, amount, min(endsAt, now + LATEST_US)
    end
  end
  ignored = ignored + 1
  call('UNLINK', name)
end

local function release(endings, endsAt, amount)
  for e, ending in ipairs(endings) do
    if ending.endsAt == endsAt then
      ending.amount, ending.holders = max(0, ending.amount - amount), ending.holders - 1
      if ending.holders < 1 then table.remove(endings, e) end
      return
    end
  end
end

local function reserve(endings, endsAt, amount)
  local at = 1
  while endings[at] and endings[at].endsAt < endsAt do at = at + 1 end
  local ending = endings[at]
  if ending and ending.endsAt == endsAt then
    ending.amount, ending.holders = ending.amount + amount, ending.holders + 1
  else
    table.insert(endings, at, { endsAt = endsAt, amount = amount, holders = 1 })
  end
end

local function endOf(rule, place)
  local endsAt = ceil((now + LEASE_US + RECLAIM_US) / RECLAIM_US) * RECLAIM_US
  for l, level in ipairs(rule.levels) do
    local ends = rule.moves[l].endsAt
    if ends then endsAt = min(endsAt, ends(level, rule.states[l][place], now)) end
  end
  return endsAt
end

local function grant(rule, place, taken, kept, needed, wanted, holders, endsAt)
  local must, ahead, isScarce = needed, wanted, false
  if endsAt <= now then must, ahead, isScarce = 0, 0, true end
  for l, level in ipairs(rule.levels) do
    local moves, state = rule.moves[l], rule.states[l][place]
    local least = floor((level.most or moves.remaining(level, blank(level.slots), now)) * SHARE / holders)
    local room = max(0, moves.remaining(level, state, now) - taken)
    must = min(must, room)
    local share = max(least, floor(room * SHARE_OF_ROOM / holders)) - kept
    ahead = least < LEAST_SHARE and 0 or max(0, min(ahead, share))
    local part = floor((room - must) / (2 * holders))
    if part < ahead then isScarce = true end
    ahead = min(ahead, part < LEAST_SHARE and 0 or part)
  end
  return must + ahead, isScarce and min((holders + 3) * TURN_US, LONGEST_TURN_US) or 0
end

local function renew(rule, place, endings, row, before, endedAt)
  local left = before
  if endedAt then release(endings, endedAt, before) end
  for at = 9, #row, 2 do
    local counted = min(row[at], left)
    left = left - counted
    book(rule, place, now - floor(row[at + 1] * (1 - CLOCK_MARGIN)), counted)
  end
  local kept = min(row[6], left)
  local held, holders = heldIn(endings)
  local endsAt = endOf(rule, place)
  local granted, retryUs = grant(rule, place, held + kept, kept, row[7], row[8], holders + 1, endsAt)
  reserve(endings, endsAt, kept + granted)
  return kept + granted, endsAt, retryUs
end
`

export const runState: string = `
local call, pack, fetch

local keys, args, request, now, reply, n

local SECOND = 1000000
local MANY = 1000
local LONGEST = 1e16
local NEVER = 2 ^ 53
local MAX_NUMBERS = 100000
local TAKE, REFUND, RENEW, CATCH_UP, LEASE, RESERVE, SETTLE = 1, 2, 3, 5, 6, 7, 8
local ABOUT, ABOUT_BYTES, SHARD_BYTES = '<dddddddddddd', 96, 16

local function bindNames()
  floor, ceil, max, min, huge = math.floor, math.ceil, math.max, math.min, math.huge
  call, pack, fetch = redis.call, struct.pack, struct.unpack
end

local MAX_DECODED, MAX_DECODED_BYTES = 500, 8000
local decoded, decodedCount = {}, 0

local function decode(text)
  local value = decoded[text]
  if value then return value end
  value = cjson.decode(text)
  if #text > MAX_DECODED_BYTES then return value end
  if decodedCount == MAX_DECODED then decoded, decodedCount = {}, 0 end
  decoded[text], decodedCount = value, decodedCount + 1
  return value
end

local formats = {}

local function formatOf(count)
  local format = formats[count]
  if not format then
    format = '<' .. string.rep('d', count)
    formats[count] = format
  end
  return format
end

local function readFields(key, ...)
  local found = redis.pcall('HMGET', key, ...)
  if not found.err then return found end
  if found.err:find('WRONGTYPE', 1, true) then call('UNLINK', key) end
  return call('HMGET', key, ...)
end

local LINGER_MS, APART_MS, MANY_APART_MS, LONG_MS, AT_LEAST_WITHIN_MS = 1000, 400, 100, 100000, 500

local function expire(key, lasts, shards)
  local place = tonumber(string.sub(redis.sha1hex(key), 1, 6), 16) / 2 ^ 24
  local hashes = (shards or 1) * (request.perRule or 1)
  local withinMs = max(AT_LEAST_WITHIN_MS, min(hashes * APART_MS, LONG_MS), hashes * MANY_APART_MS)
  local ttlMs = ceil((lasts - now) / 1000 + place * withinMs) + (request.lingerMs or LINGER_MS)
  call('PEXPIRE', key, string.format('%.0f', ttlMs))
end
`

export const run: string = `

local rules, partitions = {}, {}

local function openPartitions(sizes)
  local isStale, isLost, createdAt, layouts, reason = false, false, request.createdAt, request.layouts, nil
  local offset = request.rules + 1
  for h = 1, #sizes do
    local partition, layout = partitionOf(keys[h * 2 - 1], keys[h * 2]), layouts and layouts[h]
    partitions[h] = partition
    isStale = openPartition(partition, layout, offset, sizes[h]) or isStale
    offset = offset + sizes[h]
    if createdAt[h] ~= 0 and createdAt[h] ~= partition.createdAt then isLost = true end
    if layout and not isStale then readShards(partition) end
  end
  if isLost then
    reason = { -2 }
    for h = 1, #sizes do reason[h + 1] = partitions[h].about ~= '' and partitions[h].createdAt or 0 end
  elseif isStale then
    reason = { -1 }
    for h = 1, #sizes do reason[h * 2], reason[h * 2 + 1] = partitions[h].code % 4096, partitions[h].seed end
  end
  return reason
end

local function readRules()
  local places = request.places
  for r = 1, request.rules do
    local spec, partition = decode(args[r + 1]), partitions[places and places[r] or r]
    local rule = partition.rule
    if not (rule and rule.spec == spec) then
      if not spec.moves then spec.moves, spec.widths = movesOfAll(spec.levels), widthsOf(spec.levels) end
      rule = { spec = spec, mark = spec.mark, since = spec.since or false, shadow = spec.shadow, partition = partition }
      rule.levels, rule.moves = spec.levels, spec.moves
      rule.at, rule.all, rule.allMoves, rule.widths, rule.hasOthers, rule.slowest = 0, spec.levels, spec.moves, spec.widths, false, false
      partition.rule = rule
    end
    rules[r] = rule
    if partition.mark ~= rule.mark or not partition.isSpelled then takeOver(partition, rule) end
  end
  for r = 1, request.rules do bindRule(rules[r]) end
end

local function serve(row)
  local what = row[1]
  if what <= TAKE or what == RESERVE then
    n = decide(rules, row, what > 0)
    return
  end
  local rule = rules[row[3] / 2]
  if what == CATCH_UP then
    catchUp(rule, row)
  elseif what == LEASE then
    lease(rule, row)
  elseif what == SETTLE then
    settle(rule, row)
  elseif what == REFUND or what == RENEW then
    amend(rule, row, what == REFUND and 'refund' or 'renew')
  else
    reset(rule)
  end
end

local function run(givenKeys, givenArgs)
  if not call then bindNames() end
  keys, args, request = givenKeys, givenArgs, decode(givenArgs[1])
  now = request.now
  if not now then
    local time = call('TIME')
    now = time[1] * SECOND + time[2]
  end
  reply, n = { now, nil, nil, nil }, 1
  if request.keep then
    keepShards(request.keep)
    return reply
  end
  local sizes, calls = request.sizes, request.calls
  local reason = openPartitions(sizes)
  if reason then return reason end
  readRules()
  for c = 1, #calls do serve(calls[c]) end
  for h = 1, #sizes do savePartition(partitions[h]) end
  if request.wantsCreationTimes then
    for h = 1, #sizes do reply[n + h] = partitions[h].about ~= '' and partitions[h].createdAt or 0 end
  end
  return reply
end
`

export const settlements: string = `

local MOST_RESERVED, RESERVED_BYTES, TAIL_BYTES, LONGEST_HOLD = 1024, 32, 32, 86400000000
local SETTLED_US = 60000000

local function reservedIn(raw)
  local mark = #raw >= TAIL_BYTES + 8 and fetch('<d', raw, #raw - 7) or 0
  if mark >= 0 or mark == ceil(mark) then return nil, raw end
  local count = -mark - 0.5
  local size = #raw - TAIL_BYTES - count * RESERVED_BYTES
  if not isCount(count) or count > MOST_RESERVED or size < 8 then
    ignored = ignored + 1
    return nil, ''
  end
  local unlisted, first, last = fetch('<ddd', raw, #raw - TAIL_BYTES + 1)
  local text = string.sub(raw, size + 1, #raw - TAIL_BYTES)
  local latest = now + LONGEST_HOLD
  return { text = text, unlisted = min(unlisted, latest), first = first, last = min(last, latest) }, string.sub(raw, 1, size)
end

local function reservedText(list)
  if not list or (list.text == '' and list.unlisted <= now) then return '' end
  return list.text .. pack('<dddd', list.unlisted, list.first, list.last, -#list.text / RESERVED_BYTES - 0.5)
end

local function addReserved(partition, place, id, endsAt, amount, moment)
  partition.reserved = partition.reserved or {}
  local list = partition.reserved[place] or { text = '', unlisted = 0, first = huge, last = 0 }
  partition.reserved[place] = list
  list.last = max(list.last, endsAt)
  if #list.text >= MOST_RESERVED * RESERVED_BYTES then
    list.unlisted = max(list.unlisted, endsAt)
    return
  end
  list.text = list.text .. pack('<dddd', id, endsAt, amount, moment)
  list.first = min(list.first, endsAt)
end

local function takeReserved(list, id)
  local name = pack('<d', id)
  local at = string.find(list.text, name, 1, true)
  while at and at % RESERVED_BYTES ~= 1 do at = string.find(list.text, name, at + 1, true) end
  if not at then return nil end
  local _, _, amount = fetch('<ddd', list.text, at)
  if amount > 0 then
    list.text = string.sub(list.text, 1, at - 1) .. string.sub(list.text, at + RESERVED_BYTES)
  end
  return amount
end

local function refundAll(rule, place, at, amount, moment)
  for l, level in ipairs(rule.all) do
    local since = level.start or rule.since or -1
    rule.allMoves[l].refund(level, rule.partition.states[l][place], max(at, since), amount, moment, since)
  end
end

local function releaseEnded(rule, place, list)
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
    if one.amount > 0 then refundAll(rule, place, one.endsAt, one.amount, one.moment) end
  end
end

local function overdraw(rule, place, cost, isDebt)
  local states, amount = rule.partition.states, cost
  if not isDebt then
    for l, level in ipairs(rule.levels) do amount = min(amount, rule.moves[l].remaining(level, rule.states[l][place], now)) end
    if amount <= 0 then return end
  end
  for l, level in ipairs(rule.all) do
    local moves, state = rule.allMoves[l], states[l][place]
    if isDebt and moves.overdraw then
      moves.overdraw(level, state, now, amount)
    elseif isOwn(rule, l) then
      local room = min(amount, moves.remaining(level, state, now))
      if room > 0 then moves.take(level, state, now, room, 0) end
    else
      record(rule, level, moves, state, amount, 0)
    end
  end
end
`

export const shards: string = `

local PARTITION_CALLERS, SHARD_CALLERS = 2000, 1000

local function levelsIn(code)
  return code % 8, floor(code / 8) % 8, floor(code / 64) % 8, floor(code / 512) % 8, floor(code / 32768) % 2
end

local function codeOf(level, previousFrom, previousTo, bank)
  return level + 8 * level + 64 * previousFrom + 512 * previousTo + 4096 * level + 32768 * bank
end

local function spreadFurther(current, about)
  local code, seed = fetch('<dd', about, ABOUT_BYTES - 15)
  if floor(code / 8) % 8 == HIGHEST_LEVEL then return end
  if seed == 0 then seed = tonumber(string.sub(redis.sha1hex(tostring({}) .. current .. now), 1, 12), 16) end
  local layout = pack('<dd', code + 8 + 4096, seed)
  call('HSET', current, '@', string.sub(about, 1, ABOUT_BYTES - 16) .. layout .. string.sub(about, ABOUT_BYTES + 1))
end

local function nextLevel(partition, level, bank)
  local callers = call('HLEN', keys[partition.layout.shards[level][1] + bank]) * FAN_OUT ^ level
  while level > 0 do
    local room = level == 1 and (request.most or PARTITION_CALLERS) or (request.most or SHARD_CALLERS) * FAN_OUT ^ (level - 1)
    if callers * 4 > room then break end
    level = level - 1
  end
  return level
end

local function readLevel(partition, level, bank, begun, root, places)
  local shards, raws, seen, offset = partition.layout.shards[level], partition.raws, partition.seen, partition.offset
  local fieldsAt, placesAt, names, missing = {}, {}, {}, {}
  for _, place in ipairs(places) do
    local at = level == 0 and 0 or shards[place] + bank
    if not fieldsAt[at] then
      fieldsAt[at], placesAt[at], names[#names + 1] = { '@' }, {}, at
    end
    table.insert(fieldsAt[at], args[offset + place])
    table.insert(placesAt[at], place)
  end
  for _, at in ipairs(names) do
    local found = readFields(at == 0 and root or keys[at], unpack(fieldsAt[at]))
    local about, isOurs = found[1], at == 0
    seen[at] = -1
    if at > 0 and about and #about >= SHARD_BYTES then
      local written, lasts = fetch('<dd', about)
      if written == begun then isOurs, seen[at] = true, lasts end
    end
    for i, place in ipairs(placesAt[at]) do
      local raw = isOurs and found[i + 1]
      if raw then raws[place + 1] = raw else missing[#missing + 1] = place end
    end
  end
  return missing
end

local function readShards(partition)
  local from, to, _, _, bank = levelsIn(partition.code)
  partition.seen = {}
  if to == 0 then return end
  local places = {}
  for place = 1, partition.size do places[place] = place end
  readLevel(partition, to, bank, partition.begun, partition.current, places)
  partition.isSpread, partition.isPreviousKnown = true, from == to and partition.previousLasts <= now
end

local function readOlderShards(partition, places)
  local from, to, previousFrom, previousTo, bank = levelsIn(partition.code)
  for level = to - 1, from, -1 do
    places = readLevel(partition, level, bank, partition.begun, partition.current, places)
  end
  if partition.previousLasts <= now then return end
  for level = previousTo, previousFrom, -1 do
    places = readLevel(partition, level, 1 - bank, partition.previousBegun, partition.previous, places)
  end
end

local function placeOf(partition, field)
  if not partition.places then
    partition.places = {}
    for place = 1, partition.size do partition.places[args[partition.offset + place]] = place end
  end
  return partition.places[field]
end

local function saveShards(partition, written, count)
  local _, to, _, _, bank = levelsIn(partition.code)
  local shards, seen, last = partition.layout.shards[to], partition.seen, partition.last
  local lasts, grown = max(partition.lasts, partition.previousLasts), nil
  local about, groups, names = pack('<dd', partition.begun, lasts), {}, {}
  for i = 1, count, 2 do
    local field = written[i]
    if field == '@' then
      call('HSET', partition.current, field, written[i + 1])
    else
      local at = shards[placeOf(partition, field) or placeOf(partition, string.sub(field, 2))] + bank
      local group = groups[at]
      if not group then
        group = seen[at] < last and { '@', about } or {}
        groups[at], names[#names + 1] = group, at
      end
      table.insert(group, field)
      table.insert(group, written[i + 1])
    end
  end
  for _, at in ipairs(names) do
    local name = keys[at]
    if seen[at] < 0 then call('UNLINK', name) end
    local added = call('HSET', name, unpack(groups[at]))
    if seen[at] < last then expire(name, lasts, FAN_OUT ^ to) end
    if added > 0 then grown = name end
  end
  if grown and call('HLEN', grown) > (request.most or SHARD_CALLERS) then spreadFurther(partition.current, partition.about) end
end

local function shardsWith(partition, field)
  local names = {}
  for _, shards in ipairs(partition.layout and partition.layout.shards or {}) do
    local at = shards[placeOf(partition, field)]
    if at then
      table.insert(names, keys[at])
      table.insert(names, keys[at + 1])
    end
  end
  return names
end

local function keepShards(count)
  local about = readFields(keys[1], '@')[1]
  if not (about and #about >= ABOUT_BYTES) then return end
  local _, lasts, previousLasts = fetch(ABOUT, about)
  for k = 2, #keys do
    local leftMs = call('PTTL', keys[k])
    if leftMs >= 0 and leftMs < (max(lasts, previousLasts) - now) / 1000 then
      expire(keys[k], max(lasts, previousLasts), count)
    end
  end
end
`

export const states: string = `

local function widthsOf(levels)
  local widths = { all = {}, core = {}, coreSum = 0, isShorter = false, formats = {}, slots = 0 }
  for l, level in ipairs(levels) do
    local slots, core = level.slots, level.coreSlots or level.slots
    widths.all[l], widths.core[l], widths.coreSum = slots, core, widths.coreSum + core
    if core < slots then widths.isShorter = true end
  end
  local slots, core = widths.all[1], widths.core[1]
  if not levels[2] and core > 0 and slots < MANY then
    widths.slots, widths.formats[core * 8 + 8], widths.formats[slots * 8 + 8] = slots, formatOf(core + 1), formatOf(slots + 1)
  end
  return widths
end

local function blank(slots)
  if slots == 0 then return { n = 0 } end
  if slots == 2 then return { 0, 0 } end
  local state = {}
  for slot = 1, slots do state[slot] = 0 end
  return state
end

local function numbersIn(raw)
  local count = #raw / 8
  if count <= MANY then return { fetch(formatOf(count), raw) }, count end
  local numbers = {}
  for first = 1, count, MANY do
    local size = min(MANY, count - first + 1)
    local some = { fetch(formatOf(size), raw, first * 8 - 7) }
    for i = 1, size do numbers[first + i - 1] = some[i] end
  end
  return numbers, count
end

local function statesIn(numbers, count, levels, widths)
  local slotsOf = count == widths.coreSum + 1 and widths.core or widths.all
  local states, from = {}, 0
  for l = 1, #levels do
    local slots, state = slotsOf[l], blank(levels[l].slots)
    if slots == 0 then
      from = from + 1
      slots = numbers[from]
      state.n = slots
    end
    if not (slots and slots >= 0 and from + slots < count) then return nil end
    for slot = 1, slots do state[slot] = numbers[from + slot] end
    from = from + slots
    states[l] = state
  end
  return from + 1 == count and states or nil
end

local function encode(states, place, levels, widths, number)
  local flat, size = states[1][place], widths.coreSum
  if widths.slots > 0 then
    if size < widths.slots and flat[size + 1] ~= 0 then size = widths.slots end
  else
    local slotsOf = widths.core
    for l = 1, widths.isShorter and #levels or 0 do
      local core = levels[l].coreSlots
      if core and states[l][place][core + 1] ~= 0 then slotsOf = widths.all end
    end
    flat, size = {}, 0
    for l = 1, #levels do
      local state, count = states[l][place], slotsOf[l]
      if count == 0 then
        count = state.n
        size = size + 1
        flat[size] = count
      end
      for slot = 1, count do flat[size + slot] = state[slot] end
      size = size + count
    end
  end
  if size == 2 then return pack('<ddd', flat[1], flat[2], number) end
  flat[size + 1] = number
  if size < MANY then return pack(formatOf(size + 1), unpack(flat, 1, size + 1)) end
  local texts = {}
  for first = 1, size + 1, MANY do
    local some = min(MANY, size + 2 - first)
    texts[#texts + 1] = pack(formatOf(some), unpack(flat, first, first + some - 1))
  end
  return table.concat(texts)
end
`

export const varying: string = `
local LIMIT_HEADER = 7
local MOST_SLOTS = 2000
local MOST_PARTS = 100
local varying = {}
made['*varying'] = varying

local function innerOf(level, mark)
  if mark == level.inner.mark then return level.inner end
  if not level.byMark then
    level.byMark = {}
    for _, inner in ipairs(level.limits) do level.byMark[inner.mark] = inner end
  end
  return level.byMark[mark]
end

local function isStated(level, mark)
  for _, inner in ipairs(level.limits) do
    if inner.mark == mark then return true end
  end
  return false
end

local function limitIdleAt(level, limit)
  local inner = innerOf(level, limit.mark)
  return inner and movesOf(inner).idleAt(inner, limit.state) or limit.idleAt
end

local function limitsIn(level, state)
  if state.limits then return state.limits end
  local limits, at, isLive = {}, 1, false
  while at + LIMIT_HEADER - 1 <= state.n do
    local scaleCount, slots, stored = state[at + 4], state[at + 5], state[at + 6]
    local limit = { mark = state[at], joinedAt = state[at + 1], leftAt = state[at + 2], idleAt = state[at + 3] }
    limit.scale, limit.state = {}, {}
    at = at + LIMIT_HEADER
    if not (scaleCount >= 0 and stored >= 0 and stored <= slots and slots <= MOST_SLOTS) then break end
    if at + scaleCount + stored - 1 > state.n then break end
    for i = 1, scaleCount do limit.scale[i] = state[at + i - 1] end
    at = at + scaleCount
    for slot = 1, slots do limit.state[slot] = slot <= stored and state[at + slot - 1] or 0 end
    at = at + stored
    limits[#limits + 1] = limit
    isLive = isLive or limitIdleAt(level, limit) > now
  end
  if not isLive then limits = {} end
  state.limits = limits
  return limits
end

local function keepLimits(level, state)
  local size = 0
  for _, limit in ipairs(state.limits) do
    local slots, stored = #limit.state, #limit.state
    while stored > 0 and limit.state[stored] == 0 do stored = stored - 1 end
    state[size + 1], state[size + 2], state[size + 3] = limit.mark, limit.joinedAt, limit.leftAt
    state[size + 4], state[size + 5], state[size + 6] = min(limitIdleAt(level, limit), LONGEST), #limit.scale, slots
    state[size + 7] = stored
    size = size + LIMIT_HEADER
    for i = 1, #limit.scale do state[size + i] = limit.scale[i] end
    size = size + #limit.scale
    for slot = 1, stored do state[size + slot] = limit.state[slot] end
    size = size + stored
  end
  state.n, state.joining = size, nil
end

local function ancestorOf(limits, period)
  if (limits[1].scale[1] or 0) >= period then return limits[1] end
  local longer, longest
  for _, limit in ipairs(limits) do
    local other = limit.scale[1] or 0
    if other >= period and (not longer or other < longer.scale[1]) then longer = limit end
    if not longest or other >= (longest.scale[1] or 0) then longest = limit end
  end
  return longer or longest
end

local function isSameScale(one, other)
  if #one ~= #other then return false end
  for i = 1, #one do
    if one[i] ~= other[i] then return false end
  end
  return true
end

local function blankLimit(inner, joinedAt)
  local scale = scaleIn(inner.shape)
  return { mark = inner.mark, joinedAt = joinedAt, leftAt = now, idleAt = 0, scale = scale, state = blank(inner.slots) }
end

local function joiningOf(level, limits)
  local inner = level.inner
  if not limits[1] then return blankLimit(inner, -1) end
  local joining = blankLimit(inner, now)
  local scale = joining.scale
  local source = ancestorOf(limits, scale[1] or 0)
  if not isUsed(source.state, #source.state) then return joining end
  local copy = { n = #source.state }
  for slot = 1, copy.n do copy[slot] = source.state[slot] end
  if copy.n == inner.slots and isSameScale(scale, source.scale) then
    copy.n = nil
    joining.state = copy
  elseif #scale == #source.scale then
    local inherit = movesOf(inner).inherit
    joining.state = inherit and inherit(inner, copy, source.scale, now) or joining.state
  end
  return joining
end

local function ownIn(level, state)
  for _, limit in ipairs(limitsIn(level, state)) do
    if limit.mark == level.inner.mark then return limit, true end
  end
  local joining = state.joining
  if not (joining and joining.mark == level.inner.mark) then
    joining = joiningOf(level, state.limits)
    state.joining = joining
  end
  return joining, false
end

local function joinLimit(level, state, own)
  local after = { own }
  if state.limits[1] then state.limits[1].leftAt = now end
  for _, limit in ipairs(state.limits) do
    if isStated(level, limit.mark) then after[#after + 1] = limit end
  end
  state.limits = after
end

local function isSuperfluous(limit, staying)
  local period = limit.scale[1] or 0
  if now - limit.leftAt <= max(KEPT_US, period) then return false end
  for _, other in ipairs(staying) do
    if (other.scale[1] or 0) >= period then return true end
  end
  return false
end

local function recordByLimit(inner, limit, own, cost, delay)
  local moves, ownMoves = movesOf(inner), movesOf(own)
  local carries = moves.perUs and moves.perUs(inner) > (ownMoves.perUs and ownMoves.perUs(own) or huge) or false
  if moves.record then return moves.record(inner, limit.state, now, cost, delay, carries) end
  local fitsIn = carries and moves.delay(inner, limit.state, now, cost) or 0
  moves.take(inner, limit.state, now, cost, fitsIn < huge and max(delay, fitsIn) or delay)
end

local function recordInParts(inner, limit, own, cost, delay)
  local capacity = inner.most or movesOf(inner).remaining(inner, blank(inner.slots), 0)
  if cost <= capacity or capacity == 0 then return recordByLimit(inner, limit, own, cost, delay) end
  local parts = min(MOST_PARTS, ceil(cost / capacity))
  for part = 1, parts do
    recordByLimit(inner, limit, own, part < parts and capacity or cost - (parts - 1) * capacity, delay)
  end
end

function varying.delay(level, state, moment, cost)
  return movesOf(level.inner).delay(level.inner, ownIn(level, state).state, moment, cost)
end

function varying.take(level, state, moment, cost, delay)
  local own, isKnown = ownIn(level, state)
  if not isKnown then
    joinLimit(level, state, own)
  elseif state.limits[1] ~= own then
    state.limits[1].leftAt = now
  end
  if level.isEager and not state.limits[2] and isStated(level, own.mark) then
    for _, inner in ipairs(level.limits) do
      if inner.mark ~= own.mark then table.insert(state.limits, blankLimit(inner, -1)) end
    end
  end
  movesOf(level.inner).take(level.inner, own.state, moment, cost, delay)
  local staying = { own }
  for _, limit in ipairs(state.limits) do
    if limit ~= own and isStated(level, limit.mark) and not isSuperfluous(limit, staying) then
      staying[#staying + 1] = limit
      recordInParts(innerOf(level, limit.mark), limit, level.inner, cost, delay)
    end
  end
  state.limits = staying
  keepLimits(level, state)
end

function varying.begin(level, state, moment)
  local own, isKnown = ownIn(level, state)
  local isFirst, begin = not state.limits[1], movesOf(level.inner).begin
  local isBegun = begin and begin(level.inner, own.state, moment) or false
  if isKnown or isFirst then
    if isBegun and isFirst then joinLimit(level, state, own) end
    if isBegun then keepLimits(level, state) end
    return isBegun
  end
  joinLimit(level, state, own)
  keepLimits(level, state)
  return true
end

function varying.record(level, state, _, cost, delay)
  for _, limit in ipairs(limitsIn(level, state)) do
    local inner = innerOf(level, limit.mark)
    if inner then recordByLimit(inner, limit, inner, cost, delay) end
  end
  keepLimits(level, state)
end

function varying.overdraw(level, state, moment, cost)
  local own, isKnown = ownIn(level, state)
  if not isKnown then joinLimit(level, state, own) end
  for _, limit in ipairs(state.limits) do
    local inner = innerOf(level, limit.mark)
    local overdrawn = inner and movesOf(inner).overdraw
    if overdrawn then
      overdrawn(inner, limit.state, moment, cost)
    elseif inner then
      recordByLimit(inner, limit, level.inner, cost, 0)
    end
  end
  keepLimits(level, state)
end

function varying.refund(level, state, moment, cost, chargedAt)
  for _, limit in ipairs(limitsIn(level, state)) do
    local inner = innerOf(level, limit.mark)
    if inner then movesOf(inner).refund(inner, limit.state, moment, cost, chargedAt, limit.joinedAt) end
  end
  keepLimits(level, state)
end

function varying.remaining(level, state, moment)
  return movesOf(level.inner).remaining(level.inner, ownIn(level, state).state, moment)
end

function varying.fullAt(level, state)
  local moves, own = movesOf(level.inner), ownIn(level, state)
  return moves.fullAt and moves.fullAt(level.inner, own.state) or moves.idleAt(level.inner, own.state)
end

function varying.idleAt(level, state)
  local idleAt = 0
  for _, limit in ipairs(limitsIn(level, state)) do idleAt = max(idleAt, limitIdleAt(level, limit)) end
  return idleAt
end

function varying.perUs(level)
  local perUs = movesOf(level.inner).perUs
  return perUs and perUs(level.inner) or huge
end

function varying.shift(level, state, us)
  for _, limit in ipairs(limitsIn(level, state)) do
    local inner = innerOf(level, limit.mark)
    local shift = inner and movesOf(inner).shift
    if shift then shift(inner, limit.state, us) end
    limit.joinedAt, limit.leftAt = min(limit.joinedAt, now), min(limit.leftAt, now)
    limit.idleAt = limit.idleAt - us
  end
  keepLimits(level, state)
end
`

export const versions: string = `

local MOST_CONVERSIONS = 250

local function levelsOf(partition, number)
  partition.lists = partition.lists or {}
  if partition.lists[number] == nil then
    local field = string.format('@%.0f', number)
    local text = call('HGET', partition.current, field) or readFields(partition.previous, field)[1]
    local isList, list = pcall(cmsgpack.unpack, text)
    partition.lists[number] = text and isList and type(list) == 'table' and list or false
  end
  return partition.lists[number]
end

local function versionsIn(levels)
  local versions = {}
  for l, level in ipairs(levels) do
    local version = versions[#versions]
    if not version or version.mark ~= level.of then
      version = { mark = level.of, start = level.start, at = l - 1, longest = 0, levels = {} }
      versions[#versions + 1] = version
    end
    table.insert(version.levels, level)
    version.longest = max(version.longest, periodOf(level) or 0)
  end
  return versions
end

local function sourceLevelIn(levels, period, l, algorithm)
  local longer, longest
  for _, level in ipairs(levels) do
    if algorithmOf(level) ~= algorithm then return nil end
  end
  if not period then return levels[l] and l end
  if levels[l] and periodOf(levels[l]) == period then return l end
  for p, level in ipairs(levels) do
    local other = periodOf(level)
    if not other then return levels[l] and l end
    if other >= period and (not longer or other < periodOf(levels[longer])) then longer = p end
    if not longest or other > periodOf(levels[longest]) then longest = p end
  end
  return longer or longest
end

local function sourceLevelOf(versions, latest, level, l)
  local period, algorithm = periodOf(level), algorithmOf(level)
  local place = sourceLevelIn(latest.levels, period, l, algorithm)
  local known = place and periodOf(latest.levels[place])
  if period and (known or 0) < period then
    local levels, places = {}, {}
    for _, version in ipairs(versions) do
      for p, other in ipairs(version.levels) do
        if algorithmOf(other) == algorithm then levels[#levels + 1], places[#places + 1] = other, version.at + p end
      end
    end
    local other = sourceLevelIn(levels, period, 0, algorithm)
    if other and (periodOf(levels[other]) or 0) > (known or 0) then return places[other] end
  end
  return place and latest.at + place
end

local function livesFor(version, versions)
  if request.forgets then return 0 end
  for _, other in ipairs(versions) do
    if other ~= version and other.longest >= version.longest then return KEPT_US end
  end
  return max(KEPT_US, version.longest)
end

local function copyOf(level, of, start, from, keeps)
  local copy = {}
  for name, value in pairs(level) do copy[name] = value end
  copy.of, copy.start, copy.from, copy.keeps, copy.behindUs = of, start, from, keeps, nil
  return copy
end

local function untilsOf(partition)
  if partition.untils then return partition.untils end
  partition.untils = {}
  for at = ABOUT_BYTES + 1, #partition.about - 15, 16 do
    local mark, lasts = fetch('<dd', partition.about, at)
    partition.untils[mark] = lasts
  end
  return partition.untils
end

local function keepList(partition, levels)
  partition.spelling = partition.spelling or {}
  partition.spelling[partition.version], partition.isSpelled = levels, true
end

local function define(partition, levels)
  partition.version = partition.version + 1
  partition.lists = partition.lists or {}
  partition.lists[partition.version] = levels
  keepList(partition, levels)
end

local function extend(partition, rule, earlierLevels)
  local leftUs, lasts = max(0, partition.lasts - now, partition.previousLasts - now), 0
  for _, earlier in ipairs(earlierLevels) do
    for _, level in ipairs(rule.levels) do
      local longest = algorithmOf(earlier) == algorithmOf(level) and movesOf(level).longest
      lasts = max(lasts, longest and longest(level, scaleIn(earlier.shape), leftUs) or leftUs + (periodOf(level) or 0))
    end
  end
  lasts = min(now + lasts, now + LONGEST)
  partition.last = max(partition.last, lasts)
  if partition.previousLasts > now and lasts > partition.previousLasts then
    partition.previousLasts = lasts
    expire(partition.previous, lasts)
  end
end

local function stayingOf(versions, rule, untils)
  local staying, own = {}, nil
  for _, version in ipairs(versions) do
    if version.mark == rule.mark then own = version end
    if version.mark == rule.mark or untils[version.mark] > now then staying[#staying + 1] = version end
  end
  while #staying + (own and 0 or 1) > MOST_VERSIONS do
    local first
    for s, version in ipairs(staying) do
      if version ~= own and (not first or untils[version.mark] < untils[staying[first].mark]) then first = s end
    end
    table.remove(staying, first)
  end
  return staying, own
end

local function areKept(partition, rule)
  for at = ABOUT_BYTES + 1, #partition.about - 15, 16 do
    local mark, lasts = fetch('<dd', partition.about, at)
    if mark ~= rule.mark and lasts <= now then return false end
  end
  return not partition.untils
end

local function join(partition, rule, levels, versions, latest, staying, own, start)
  local after = {}
  for _, version in ipairs(staying) do
    for l, level in ipairs(version.levels) do
      after[#after + 1] = copyOf(level, level.of, level.start, version.at + l, true)
    end
  end
  if not own then
    for l, level in ipairs(rule.levels) do
      after[#after + 1] = copyOf(level, rule.mark, start, sourceLevelOf(versions, latest, level, l))
    end
    partition.since = start
    if partition.isKnown or partition.previousLasts > now then extend(partition, rule, levels) end
  end
  define(partition, after)
  partition.isChanged = true
end

local function takeOver(partition, rule)
  local levels = partition.version > 0 and levelsOf(partition, partition.version)
  if not levels then
    partition.mark = rule.mark
    partition.since = min(now, partition.version == 0 and rule.since or -1)
    levels = {}
    for l, level in ipairs(rule.levels) do levels[l] = copyOf(level, rule.mark, partition.since) end
    return define(partition, levels)
  end
  if not partition.isSpelled then keepList(partition, levels) end
  if partition.mark == rule.mark or (partition.mark == -rule.mark and areKept(partition, rule)) then return end
  local untils, latest = untilsOf(partition), nil
  local mark = partition.mark < 0 and -partition.mark or partition.mark
  local versions, listed = {}, versionsIn(levels)
  for _, version in ipairs(listed) do
    if version.mark == mark then latest = version end
    if version.mark == mark or untils[version.mark] > now then versions[#versions + 1] = version end
  end
  local start = min(now, rule.since and rule.since > partition.since and rule.since or now)
  if mark ~= rule.mark then
    local all, isKnown = {}, false
    for v, version in ipairs(versions) do
      all[v], isKnown = version, isKnown or version.mark == rule.mark
    end
    if not isKnown then
      local joining = { longest = 0 }
      for _, level in ipairs(rule.levels) do joining.longest = max(joining.longest, periodOf(level) or 0) end
      all[#all + 1] = joining
    end
    untils[mark] = start + livesFor(latest, all)
    partition.isChanged = true
  end
  local staying, own = stayingOf(versions, rule, untils)
  if not own or #staying < #listed then join(partition, rule, levels, versions, latest, staying, own, start) end
  local isAlone = #staying + (own and 0 or 1) == 1
  partition.mark = isAlone and rule.mark or -rule.mark
  if isAlone and own then partition.since = own.start end
  local kept = {}
  for _, version in ipairs(staying) do
    kept[version.mark] = untils[version.mark] or 0
    if not isAlone then partition.last = max(partition.last, kept[version.mark]) end
  end
  kept[rule.mark] = 0
  partition.untils = isAlone and {} or kept
end

local function stepBack(partition)
  local levels = partition.version > 0 and levelsOf(partition, partition.version)
  local behindUs, after, lessUs = partition.saved - now, {}, partition.saved - now
  for l, level in ipairs(levels or {}) do
    if movesOf(level).isCalendar then lessUs = 0 end
    after[l] = copyOf(level, level.of, min(level.start, now), l, true)
    after[l].behindUs = behindUs
  end
  if levels then define(partition, after) end
  local untils = untilsOf(partition)
  for mark, lasts in pairs(untils) do untils[mark] = lasts - behindUs end
  partition.lasts, partition.previousLasts = max(0, partition.lasts - lessUs), max(0, partition.previousLasts - lessUs)
  partition.last = max(partition.last, partition.lasts, partition.previousLasts)
  partition.since, partition.resetAt = min(partition.since, now), min(partition.resetAt, now)
  partition.saved, partition.isChanged = now, true
end

local function bindRule(rule)
  local partition = rule.partition
  rule.since = partition.since
  if partition.mark ~= rule.mark then
    local all = {}
    for l, level in ipairs(levelsOf(partition, partition.version)) do
      all[l] = level
      if level.of == rule.mark and (l == 1 or all[l - 1].of ~= rule.mark) then rule.at, rule.since = l - 1, level.start end
    end
    for l, level in ipairs(rule.levels) do all[rule.at + l] = copyOf(level, rule.mark, rule.since) end
    for _, level in ipairs(all) do level.holder = rule.levels[1].holder end
    rule.all, rule.allMoves, rule.widths, rule.hasOthers = all, movesOfAll(all), widthsOf(all), #all > #rule.levels
  end
  local states = partition.states
  if not states then
    states = {}
    for l = 1, #rule.all do states[l] = {} end
    partition.all, partition.widths, partition.states = rule.all, rule.widths, states
  end
  rule.states = states
  if not rule.hasOthers then return end
  rule.states = {}
  for l = 1, #rule.levels do rule.states[l] = states[rule.at + l] end
end

local function isOwn(rule, l)
  return l > rule.at and l <= rule.at + #rule.levels
end

local function record(rule, level, moves, state, cost, wait)
  if not rule.slowest then
    rule.slowest = huge
    for l, own in ipairs(rule.levels) do
      local perUs = rule.moves[l].perUs
      if perUs then rule.slowest = min(rule.slowest, perUs(own)) end
    end
  end
  local carries = moves.perUs and moves.perUs(level) > rule.slowest or false
  if moves.record then return moves.record(level, state, now, cost, wait, carries) end
  local fitsIn = carries and moves.delay(level, state, now, cost) or 0
  moves.take(level, state, now, cost, fitsIn < huge and max(wait, fitsIn) or wait)
end

local function spell(partition)
  for version, levels in pairs(partition.spelling or {}) do
    call('HSETNX', partition.current, string.format('@%.0f', version), cmsgpack.pack(levels))
  end
  if not partition.untils then return string.sub(partition.about, ABOUT_BYTES + 1) end
  local texts = {}
  for mark, lasts in pairs(partition.untils) do texts[#texts + 1] = pack('<dd', mark, lasts) end
  return table.concat(texts)
end

local function isUsed(state, slots)
  for slot = 1, state.n or slots do
    if state[slot] ~= 0 then return true end
  end
  return false
end

local function inherited(level, stored, earlier, at)
  if not isUsed(stored, earlier.slots) then return nil end
  local state = { n = stored.n or earlier.slots }
  for slot = 1, state.n do state[slot] = stored[slot] end
  if earlier.shape == level.shape then return state end
  local inherit = makers[level.name] and movesOf(level).inherit
  local scale = scaleIn(earlier.shape)
  return inherit and #scale == #scaleIn(level.shape) and inherit(level, state, scale, at) or nil
end

local function converted(states, earlierLevels, levels)
  local after = {}
  for l, level in ipairs(levels) do
    local state = level.from and states[level.from]
    if state and not level.keeps then
      state = inherited(level, state, earlierLevels[level.from], min(now, level.start))
    end
    after[l] = state or blank(level.slots)
    local shift = level.keeps and level.behindUs and movesOf(level).shift
    if shift and isUsed(after[l], level.slots) then shift(level, after[l], level.behindUs) end
  end
  return after
end

local function storedStates(rule, raw)
  local partition, count = rule.partition, #raw / 8
  if count > MAX_NUMBERS or count ~= floor(count) then return nil end
  local numbers = numbersIn(raw)
  local version = numbers[count]
  if version == partition.version then return statesIn(numbers, count, rule.all, rule.widths) end
  if not (version and version < partition.version and version >= partition.version - MOST_CONVERSIONS) then return nil end
  local levels = levelsOf(partition, version)
  local states = levels and statesIn(numbers, count, levels, widthsOf(levels))
  for later = version + 1, states and partition.version or 0 do
    local laterLevels = levelsOf(partition, later)
    if not laterLevels then return nil end
    states, levels = converted(states, levels, laterLevels), laterLevels
  end
  return states
end
`
