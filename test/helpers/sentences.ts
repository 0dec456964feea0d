/** One comment or title that breaks a rule. */
export interface Fault {
  readonly line: number
  readonly text: string
  readonly rule: string
}

interface Comment {
  readonly line: number
  readonly text: string
  /** The code that follows a doc comment; empty for a line comment. */
  readonly code: string
}

const CLAUSE = /^(?:What|Whatever|Whether|How|Where|When|Which|Who|Whose|Why|Of|The same|So (?:many|much|long|few))\b/
const VAGUE = /\b(?:so (?:many|much|long|few)|how (?:many|much|long))\b/i
const METHOD =
  /^(?:(?:export|default|async|static|override|declare|abstract) )*(?:function\*? )?(?!if\b|for\b|while\b|switch\b|return\b|readonly\b|get\b|constructor\b)[#\w]+\??(?:<[^(]*>)?\(/
const BOOLEAN =
  /^(?:(?:export|async|static|readonly|override|get|const|let) |function )*[#\w]+\??(?:\((?:[^()]|\([^()]*\))*\))?: (?:Promise<boolean>|boolean)\b/
const CONSTANT =
  /^(?:(?:export|static|readonly) )*(?:const )?[A-Z][A-Z\d_]+\b|^(?:export )?const \w+(?:: number)? = -?[\d_.]+/

/** Reads the doc comments, with the declaration behind each, and the line comments that begin a line. */
function commentsOf(source: string): Comment[] {
  const lines = source.split('\n')
  const found: Comment[] = []
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!.trim()
    const first = at + 1
    if (line.startsWith('/**')) {
      const piece = [line]
      while (!lines[at]!.includes('*/') && at < lines.length - 1) piece.push(lines[++at]!.trim())
      const text = piece.map(one => one.replace(/^\/\*\*|\*\/.*$|^\* ?/g, '').trim())
      let next = at + 1
      while (/^\s*@/.test(lines[next] ?? '')) next++
      found.push({ line: first, text: text.join(' ').trim(), code: (lines[next] ?? '').trim() })
    } else if (line.startsWith('//') && !line.startsWith('///')) {
      const piece = [line]
      while (lines[at + 1]?.trim().startsWith('//')) piece.push(lines[++at]!.trim())
      found.push({ line: first, text: piece.map(one => one.replace(/^\/\/ ?/, '')).join(' '), code: '' })
    }
  }
  return found
}

/** Lists the comments of a source text that break a rule. */
export function commentFaults(source: string): Fault[] {
  return commentsOf(source).flatMap(({ line, text, code }) => {
    const rule = commentRule(text, code)
    return rule === undefined ? [] : [{ line, text, rule }]
  })
}

function commentRule(text: string, code: string): string | undefined {
  if (CLAUSE.test(text) && code !== '') return 'a doc comment begins with a clause, not with a statement'
  if (BOOLEAN.test(code) && !/^(?:True|False) (?:if|when|while|once|until)\b|^[A-Z][a-z-]*s\b/.test(text))
    return 'the comment on a boolean begins with "True if"'
  if (CONSTANT.test(code) && VAGUE.test(text)) return 'the comment on a constant names no number ("so many")'
  if (METHOD.test(code) && !/^[A-Z][a-z-]*s\b|^(?:True|False) if\b/.test(text))
    return 'the comment on a function begins with a verb in -s'
  return undefined
}
