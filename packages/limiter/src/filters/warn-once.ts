/** The codes of the warnings. */
export type WarningCode =
  | 'DIANA_PROXY_NOT_TRUSTED'
  | 'DIANA_TRUSTS_EVERYONE'
  | 'DIANA_MOUNTED_TWICE'
  | 'DIANA_MOUNTED_LATE'
  | 'DIANA_FAILED'
  | 'DIANA_NO_SUCH_RULE'

/** Mistakes in how Diana is used that she can see while she runs, each with its remedy. */
const mistakes: Readonly<Record<WarningCode, string>> = {
  DIANA_PROXY_NOT_TRUSTED:
    'a call carries X-Forwarded-For or Forwarded, but trustProxy trusts nobody, so all who come through your proxy are ' +
    'counted as one caller: set trustProxy to the number of your proxies or to their networks',
  DIANA_TRUSTS_EVERYONE:
    'trustProxy trusts every address, so callers may choose the address that they are counted under: list the networks ' +
    'of your own proxies only',
  DIANA_MOUNTED_TWICE:
    'a filter met a call that a filter of the same limiter and the same rules had judged already; it is counted once: ' +
    'mount each filter once',
  DIANA_MOUNTED_LATE:
    'a filter met a call that was answered already, which is not judged any more: mount the filter before the handlers',
  DIANA_FAILED: 'Diana failed to judge a call, so it passed without being counted',
  DIANA_NO_SUCH_RULE:
    'a filter names a rule that is not there, so it limits nothing: add the rule, or correct the name',
}

const told = new Set<string>()

/** Tells the operator of a mistake, once in the life of the process: a warning per call would be an attack of its own. */
export function warnOnce(code: WarningCode, detail?: string): void {
  if (told.has(code)) return
  told.add(code)
  warn(code, detail)
}

/** Tells the operator, once for each rule, that a filter was mounted for one that is not there. */
export function warnOfRule(rule: string): void {
  if (told.has(`rule ${rule}`)) return
  told.add(`rule ${rule}`)
  warn('DIANA_NO_SUCH_RULE', `"${rule}"`)
}

function warn(code: WarningCode, detail: string | undefined): void {
  const message = detail === undefined ? mistakes[code] : `${mistakes[code]}: ${detail}`
  process.emitWarning(message, { type: 'DianaWarning', code })
}
