const DEEPEST = 8

/** Text that YAML reads as itself, in a block and inside brackets, whatever stands behind it. */
const PLAIN = /^[A-Za-z/_][\w/.~+@%=*-]*(?:[: ][\w/.~+@%=*-]+)*$/
/** A count per period, such as 100/m: begins with a digit and is no number. */
const RATE = /^\d+\/[a-z\d]+$/
const DURATION = /^\d+(?:ms|s|m|h|d)$/
/** Words that some readers of YAML take for something else than text. */
const WORDS = /^(?:true|false|yes|no|on|off|null|y|n|\.inf|\.nan)$/i

/** Returns a value in YAML on one line, as it may stand in a block, inside brackets and, with `json`, in a JSON document. */
export function flowYaml(value: unknown, style: { readonly json?: boolean } = {}, depth = 0): string {
  if (depth > DEEPEST) throw new RangeError(`an option is nested over ${DEEPEST} levels deep: no rule needs that`)
  const inner = (one: unknown) => flowYaml(one, style, depth + 1)
  if (typeof value === 'string') return style.json ? JSON.stringify(value) : textIn(value)
  if (Array.isArray(value)) return `[${value.map(inner).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(([name, one]) => `${inner(name)}: ${inner(one)}`)
    return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`
  }
  return JSON.stringify(value) ?? 'null'
}

function textIn(text: string): string {
  const isPlain = (PLAIN.test(text) && !WORDS.test(text)) || RATE.test(text) || DURATION.test(text)
  if (isPlain && text.length <= 1024) return text
  // readers differ in which invisible characters may stand in quotes unescaped
  if (/^[\x20-\x7e\u00a0-\ud7ff\uf900-\ufdcf]*$/.test(text) && !/[\\\u2028\u2029]/.test(text))
    return `'${text.replaceAll("'", "''")}'`
  return JSON.stringify(text).replace(/[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g, escapeCode)
}

function escapeCode(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

const LONGEST_LINE = 90

/** Returns a rule in YAML: one option a line, and those of a long one on lines of their own. */
export function ruleYaml(options: Readonly<Record<string, unknown>>): string {
  return Object.entries(options)
    .map(([name, value]) => {
      const line = `${flowYaml(name)}: ${flowYaml(value)}`
      const isLong = typeof value === 'object' && value !== null && !Array.isArray(value) && isTall(value, line)
      if (!isLong) return line
      const inner = Object.entries(value).map(([word, one]) => `  ${flowYaml(word)}: ${flowYaml(one)}`)
      return `${flowYaml(name)}:\n${inner.join('\n')}`
    })
    .join('\n')
}

/** True if a map reads better on several lines: it is long, or has a map in it. */
function isTall(value: object, line: string): boolean {
  const values = Object.values(value)
  if (values.length === 0) return false
  return (
    line.length > LONGEST_LINE || values.some(one => typeof one === 'object' && one !== null && !Array.isArray(one))
  )
}
