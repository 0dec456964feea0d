import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Call, callerAddress, createLimiter, DianaError, type Limiter, normalizeTarget } from 'diana-limiter'
import { adminOf } from 'diana-limiter/admin'
import { mergeExtensions } from 'diana-limiter/gateway'
import { suggest } from 'diana-limiter/schema'
import { CliError, type Terminal } from '../process/terminal.ts'
import { loadPlugins, readText } from './check.ts'
import type { Arguments, Command } from './command.ts'
import { type Explained, explainForMachines, explainForPeople } from './explanation.ts'

/** `diana explain`: what would become of this call? */
export const explain: Command = {
  usage: "FILE METHOD PATH [-H 'name: value']… [--ip ADDRESS] [--rule ID]… [--plugin FILE]… [--json]",
  details: [
    '  FILE                a rule file; - is standard input',
    "  METHOD PATH         the call, such as GET '/orders/1?full=yes'",
    "  -H 'name: value'    a header of the call; may be repeated",
    '  --ip ADDRESS        the address of the caller; default 127.0.0.1',
    '  --rule ID           a rule that the call names, as the filter of a route does; may be repeated',
    '  --plugin FILE       a module whose algorithms, dimensions and sources the rules may name; may be repeated',
    '  --json              print the result as JSON',
  ],
  options: {
    header: { type: 'string', short: 'H', multiple: true },
    ip: { type: 'string' },
    rule: { type: 'string', multiple: true },
    plugin: { type: 'string', multiple: true },
    json: { type: 'boolean' },
  },
  async run(args, terminal) {
    const [file, method, path, ...more] = args.words
    if (file === undefined || method === undefined || path === undefined || more.length > 0) {
      throw new CliError(2, 'a rule file, a method and a path are needed')
    }
    const describe = readCall(method, path, args.options)
    const plugins = await loadPlugins((args.options.plugin as readonly string[] | undefined) ?? [])
    const rules = file === '-' ? await keepInput(terminal) : { path: file, remove: async () => {} }
    let explained: Explained
    try {
      const limiter = await createLimiter({ config: rules.path, isObserver: true, ...mergeExtensions({}, plugins) })
      explained = await ask(limiter, describe(limiter), args.options.rule as readonly string[] | undefined)
      await limiter.close()
    } catch (error) {
      throw file === '-' ? ofInput(error, rules.path) : error
    } finally {
      await rules.remove()
    }
    const lines = args.options.json === true ? [explainForMachines(explained)] : explainForPeople(explained)
    for (const line of lines) terminal.print(line)
    return 0
  },
}

async function ask(limiter: Limiter, call: Call, rule: readonly string[] | undefined): Promise<Explained> {
  const unknown = rule?.find(id => !limiter.rules.some(rule => rule.id === id))
  if (unknown !== undefined) {
    await limiter.close()
    throw new CliError(1, `unknown rule "${unknown}"${didYouMean(unknown, limiter)}`)
  }
  const named = { rule }
  const [rules, verdict] = [await limiter.explain(call, named), await limiter.peek(call, named)]
  // a caller that is denied is judged by no rule
  const misses = verdict.reason === 'denied' ? [] : adminOf(limiter).explainMisses(call, named)
  return { call, rules, verdict, misses }
}

function didYouMean(id: string, { rules }: Limiter): string {
  const meant = suggest(
    id,
    rules.map(rule => rule.id),
  )
  return meant === undefined ? '' : `; did you mean ${meant}?`
}

/** Writes standard input to a file, since a limiter reads its rules from a file. */
async function keepInput({ input }: Terminal): Promise<{ path: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'diana-explain-'))
  const path = join(folder, 'stdin')
  await writeFile(path, await readText(input))
  return { path, remove: () => rm(folder, { recursive: true }) }
}

function ofInput(error: unknown, path: string): unknown {
  if (!(error instanceof DianaError)) return error
  return new DianaError(error.code, error.message.replaceAll(path, 'stdin'))
}

/** Returns the call that was described; whose address is the caller's depends on the proxies that the rules trust. */
function readCall(method: string, path: string, options: Arguments['options']): (limiter: Limiter) => Call {
  const target = normalizeTarget(path)
  if (target === undefined) throw new CliError(2, `"${path}" is not a path; it must look like /orders/1`)
  const ip = String(options.ip ?? '127.0.0.1')
  if (isIP(ip) === 0) throw new CliError(2, `--ip must be an address such as 203.0.113.9, not "${ip}"`)
  const headers = readHeaders((options.header as readonly string[] | undefined) ?? [])
  return limiter => ({
    method: method.toUpperCase(),
    path: target.path,
    caseInsensitive: true,
    query: target.query,
    ip: callerAddress(limiter, ip, headers),
    host: headers.host,
    headers,
  })
}

function readHeaders(lines: readonly string[]): Record<string, string> {
  const headers = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).trim().toLowerCase()
    if (colon < 0 || name === '') throw new CliError(2, `"${line}" is not a header; write -H 'name: value'`)
    const value = line.slice(colon + 1).trim()
    const earlier = headers.get(name)
    // as Node joins headers that come twice
    headers.set(name, earlier === undefined ? value : `${earlier}${name === 'cookie' ? '; ' : ', '}${value}`)
  }
  return Object.fromEntries(headers)
}
