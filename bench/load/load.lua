-- The calls of a thousand accounts in turn, made before the clock starts; what became of them as JSON on the last line.
local calls, last = {}, 0

function init()
  for i = 1, 1000 do
    local account = 'account-' .. i
    calls[i] = wrk.format('GET', nil, { ['x-account-id'] = account, ['x-device-id'] = 'device-of-' .. account })
  end
end

function request()
  last = last % 1000 + 1
  return calls[last]
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format('{"calls":%d,"microseconds":%d,"failed":%d,"p50":%d,"p99":%d}',
    summary.requests, summary.duration, failed, latency:percentile(50), latency:percentile(99)))
end
