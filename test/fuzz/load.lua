-- Well-behaved load for wrk: a call on each connection about every 10 ms. The file named by the first argument holds the
-- headers of one call per line, as name=value pairs between tabs; they are used in turn.
local requests = {}
local at = 0

function init(args)
  for line in io.lines(args[1]) do
    local headers = {}
    for name, value in string.gmatch(line, '([^\t=]+)=([^\t]*)') do headers[name] = value end
    requests[#requests + 1] = wrk.format('GET', nil, headers)
  end
end

function delay()
  return 10
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local errors = summary.errors
  local lost = errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format('MEASURED %d %d %d %f %f\n', summary.requests, errors.status, lost,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
