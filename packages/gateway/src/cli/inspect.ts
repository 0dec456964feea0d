import { createLimiter, formatDuration } from 'diana-limiter'
import { adminOf, type InspectedLedger, type InspectedLimit } from 'diana-limiter/admin'
import { mergeExtensions } from 'diana-limiter/gateway'
import { CliError } from '../process/terminal.ts'
import { loadPlugins } from './check.ts'
import type { Command } from './command.ts'

const MOST = 100

/** `diana inspect`: what does Redis know of this caller? */
export const inspect: Command = {
  usage: 'KEY (--rules FILE | --redis URL) [--most N] [--plugin FILE]… [--json]',
  details: [
    "  KEY              a key of Redis, such as 'diana:login:account{ann}', or a pattern, such as 'diana:login:*'",
    '  --rules FILE     the rule file, whose store is read and whose rules name the limits',
    '  --redis URL      the Redis to read, if no rules are at hand: limits are then shown without their names',
    `  --most N         the most keys that are shown of a pattern; default ${MOST}`,
    '  --plugin FILE    a module whose algorithms and dimensions the rules may name; may be repeated',
    '  --json           print the result as JSON, with the numbers as they are stored',
    '',
    '  Changes nothing. Exits with 1 if there is no such key.',
  ],
  options: {
    rules: { type: 'string' },
    redis: { type: 'string' },
    most: { type: 'string' },
    plugin: { type: 'string', multiple: true },
    json: { type: 'boolean' },
  },
  async run({ words, options }, terminal) {
    const [key, ...more] = words
    if (key === undefined || more.length > 0) {
      throw new CliError(2, "one key or pattern is needed: diana inspect 'diana:login:*' --rules diana.yaml")
    }
    const { rules, redis, most = String(MOST), json } = options
    if ((rules === undefined) === (redis === undefined)) {
      throw new CliError(2, 'give either --rules FILE or --redis URL: where the counts are')
    }
    if (!/^[1-9]\d{0,5}$/.test(String(most)))
      throw new CliError(2, `--most must be a whole number, not "${String(most)}"`)
    const plugins = await loadPlugins((options.plugin as readonly string[] | undefined) ?? [])
    // a limiter needs a rule, and this one meets no call
    const source =
      rules === undefined
        ? { store: { redis: String(redis) }, rules: [{ id: 'none', match: 'none' as const, limit: '1/s' }] }
        : { config: String(rules) }
    const limiter = await createLimiter({ ...source, isObserver: true, ...mergeExtensions({}, plugins) })
    const ledgers = await adminOf(limiter)
      .inspect(key, Number(most))
      .finally(() => limiter.close())
    if (json === true) terminal.print(JSON.stringify(ledgers, null, 2))
    else
      for (const line of ledgers.flatMap((ledger, place) => [...(place > 0 ? [''] : []), ...linesOf(ledger)]))
        terminal.print(line)
    if (ledgers.length === 0) {
      terminal.printError(`diana inspect: nothing is counted under ${key}; diana explain shows the key of a call`)
      return 1
    }
    return 0
  },
}

function linesOf(ledger: InspectedLedger): string[] {
  const { key, rule, caller, limits, reservations, leases, resetAt, expiresInMs } = ledger
  const whom = caller === '' ? 'all callers together' : `caller ${caller}`
  return [
    key,
    rule === undefined ? '  no rule in force counts under this key' : `  rule "${rule}", ${whom}`,
    ...limits.map(one => `  limit ${limitInWords(one)}`),
    ...reservations.map(
      ({ amount, endsAt }) => `  reserved: ${amount}, released ${inWords(endsAt)} unless it is settled`,
    ),
    ...leases.map(
      ({ permits, processes, endsAt }) =>
        `  leased: ${permits} permits by ${processes} processes, until ${inWords(endsAt)}`,
    ),
    ...(resetAt === undefined ? [] : [`  reset: ${new Date(resetAt).toISOString()}`]),
    `  forgotten in ${durationOf(expiresInMs)}`,
  ]
}

function limitInWords({
  limit,
  isUsed,
  used,
  remaining,
  fullAt,
  since,
  keptUntil,
  owesUntil,
  state,
}: InspectedLimit): string {
  const numbers = used === undefined ? `numbers ${state.join(' ')}` : `${used} used, ${remaining} left`
  const parts = [
    ...(fullAt !== undefined && used !== undefined && used > 0 ? [`all back ${inWords(fullAt)}`] : []),
    ...(since === undefined ? [] : [`counts since ${new Date(since).toISOString()}`]),
    ...(isUsed || keptUntil === undefined ? [] : [`not the one used last; kept ${inWords(keptUntil)}`]),
    ...(owesUntil === undefined ? [] : [`admits only what another limit admits, too, until ${inWords(owesUntil)}`]),
  ]
  return [`${limit}: ${numbers}`, ...parts].join('; ')
}

function inWords(at: number): string {
  return Number.isFinite(at) ? new Date(at).toISOString() : 'never'
}

function durationOf(ms: number): string {
  return ms < 1000 ? `${ms} ms` : formatDuration(Math.round(ms / 1000) * 1000)
}
