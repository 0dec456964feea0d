import { isIP } from 'node:net'
import { type Call, createLimiter, type Limiter, normaliseTarget } from 'diana-limiter'
import { type Arguments, type Command, Complaint } from './command.ts'
import { explainForMachines, explainForPeople } from './explanation.ts'

/** `diana explain`: what would become of this call? */
export const explain: Command = {
  name: 'explain',
  summary: 'Tells which rules a call meets, under which key and with which numbers; counts nothing.',
  usage: "FILE METHOD PATH [-H 'name: value']… [--ip ADDRESS] [--json]",
  details: [
    '  FILE                a rule file',
    "  METHOD PATH         the call, such as GET '/orders/1?full=yes'",
    "  -H 'name: value'    a header of the call; may be repeated",
    '  --ip ADDRESS        where the call comes from; 127.0.0.1 unless given',
    '  --json              print the result as JSON',
  ],
  options: {
    header: { type: 'string', short: 'H', multiple: true },
    ip: { type: 'string' },
    json: { type: 'boolean' },
  },
  async run(args, terminal) {
    const [file, method, path, ...more] = args.words
    if (file === undefined || method === undefined || path === undefined || more.length > 0) {
      throw new Complaint(2, 'name a rule file, a method and a path')
    }
    const describe = readCall(method, path, args.options)
    const limiter = await createLimiter({ config: file })
    const call = describe(limiter)
    const explained = { call, rules: await limiter.explain(call), verdict: await limiter.peek(call) }
    await limiter.close()
    const lines = args.options.json === true ? [explainForMachines(explained)] : explainForPeople(explained)
    for (const line of lines) terminal.print(line)
    return 0
  },
}

/** The call that was described; whose address is the caller's depends on the proxies that the rules trust. */
function readCall(method: string, path: string, options: Arguments['options']): (limiter: Limiter) => Call {
  const target = normaliseTarget(path)
  if (target === undefined) throw new Complaint(2, `"${path}" is no path: write one such as /orders/1`)
  const ip = String(options.ip ?? '127.0.0.1')
  if (isIP(ip) === 0) throw new Complaint(2, `"${ip}" is no address: write --ip 203.0.113.9`)
  const headers = readHeaders((options.header as readonly string[] | undefined) ?? [])
  return limiter => ({
    method: method.toUpperCase(),
    path: target.path,
    anyCase: true,
    query: target.query,
    ip: limiter.addressOf(ip, headers[limiter.forwardedBy]),
    host: headers.host,
    headers,
  })
}

function readHeaders(lines: readonly string[]): Record<string, string> {
  const headers = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).trim().toLowerCase()
    if (colon < 0 || name === '') throw new Complaint(2, `"${line}" is no header: write -H 'name: value'`)
    const value = line.slice(colon + 1).trim()
    const earlier = headers.get(name)
    // as Node joins headers that come twice
    headers.set(name, earlier === undefined ? value : `${earlier}${name === 'cookie' ? '; ' : ', '}${value}`)
  }
  return Object.fromEntries(headers)
}
