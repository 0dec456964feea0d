/** A comment or a title that breaks a rule of sentences. */
export interface Fault {
  readonly line: number
  readonly text: string
  readonly rule: string
}

interface Comment {
  readonly line: number
  readonly text: string
  /** The declaration behind a doc comment; empty for a line comment. */
  readonly code: string
}

/** Beginnings of a clause, which leaves a text without a statement. */
const clause = /^(?:What|Whatever|Whether|How|Where|When|Which|Who|Whose|Why|Of|The same|So (?:many|much|long|few))\b/i
const vague = /\b(?:so (?:many|much|long|few)|how (?:many|much|long|few))\b/i
/** A number without its name: `so many`, unless a comparison follows. */
const nameless = /\bso (?:many|much|long|few)\b(?! as\b)(?![^.;:]* that\b)/i
/** Beginnings of a clause in a line comment, which may be a fragment otherwise. */
const lineClause = /^(?:what|whatever|whether|how|where|which|who|whose) /
const verb = /^[A-Z][a-z-]*s\b/
const trueIf = /^(?:True|False)(?:,[^,]+,)? (?:if|when|while|once|until)\b/
const modifiers = '(?:(?:export|default|async|static|override|declare|abstract|readonly) )*'
const method = new RegExp(
  `^${modifiers}(?:function\\*? )?(?!if\\b|for\\b|while\\b|switch\\b|return\\b|constructor\\b|get )[#\\w]+\\??(?:<[^(]*>)?\\(`,
)
const boolean = new RegExp(
  `^${modifiers}(?:get )?(?:function )?(?:const |let )?[#\\w]+\\??(?:\\((?:[^()]|\\([^()]*\\))*\\))?: (?:Promise<boolean>|boolean)\\b`,
)
const constant =
  /^(?:(?:export|static|readonly) )*(?:const )?[A-Z][A-Z\d_]+\b|^(?:export )?const \w+(?:: number)? = -?[\d_.]+/
/** Words that a reader meets rarely, and words for Diana or people as a man or a woman. */
const words = new RegExp(
  `(?<![\\w'’-])(?:${[
    ...[
      'whoever',
      'whomever',
      'whom',
      'whosoever',
      'lest',
      'anew',
      'afresh',
      'nobody',
      'somebody',
      'thereof',
      'therein',
    ],
    ...[
      'wherein',
      'whereof',
      'whence',
      'hence',
      'thence',
      'thereby',
      'hereby',
      'albeit',
      'seldom',
      'betimes',
      'dearer',
    ],
    ...['she', 'her', 'hers', 'herself', 'he', 'him', 'his', 'himself', 'tell', 'tells', 'told', 'telling', 'for ever'],
    ...['normalise[ds]?', 'centres?', 'colours?', 'behaviour', 'favour', 'honour'],
  ].join('|')})(?![\\w'’-])`,
  'i',
)
/** Verbs without a subject in front: a title that begins with one is a sentence only behind the title of its group. */
const subjectless =
  /^(?:is|are|was|were|has|have|can|cannot|may|must|does|do|will|would|that|but|and|by|its|whose|never|neither|come|decide|equal|agree|pays|reserves|decides|equals|agrees|suggests|answers as|refuses|keeps|opens|learns|rejects|forgets|admits|lets|leaves|takes|says|reads|reaches|gives|shows|sends|returns|throws|finds|writes|makes|stays|knows) /

/** Reads the doc comments, with the declaration behind each, and the line comments that begin a line. */
function commentsOf(source: string): Comment[] {
  const lines = source.split('\n')
  const found: Comment[] = []
  for (let at = 0; at < lines.length; at++) {
    const begin = at
    const first = lines[at]!.trim()
    if (first.startsWith('/**')) {
      while (!lines[at]!.includes('*/') && at < lines.length - 1) at++
      const text = lines.slice(begin, at + 1).map(one =>
        one
          .replace(/\*\/.*$/, '')
          .replace(/^\s*(?:\/\*\*|\*) ?/, '')
          .trim(),
      )
      let next = at + 1
      while (/^\s*@/.test(lines[next] ?? '')) next++
      found.push({ line: begin + 1, text: text.join(' ').trim(), code: (lines[next] ?? '').trim() })
    } else if (first.startsWith('// ')) {
      while (lines[at + 1]?.trim().startsWith('// ')) at++
      const text = lines.slice(begin, at + 1).map(one => one.trim().slice('// '.length))
      found.push({ line: begin + 1, text: text.join(' '), code: '' })
    }
  }
  return found
}

function ruleOfComment({ text, code }: Comment): string | undefined {
  if (words.test(text)) return 'a comment has no rare word'
  if (/ \/$/.test(text)) return 'a comment has no slash at its end'
  if (nameless.test(text)) return 'a comment names a number, and has no "so many"'
  if (code === '') return lineClause.test(text) ? 'a line comment begins with a subject, not with a clause' : undefined
  if (clause.test(text)) return 'a doc comment begins with a statement, not with a clause'
  if (boolean.test(code) && !trueIf.test(text) && !verb.test(text))
    return 'a comment on a boolean begins with "True if"'
  if (constant.test(code) && vague.test(text)) return 'a comment on a constant has no "so many" and no "how long"'
  if (method.test(code) && !verb.test(text) && !trueIf.test(text))
    return 'a doc comment on a function begins with a verb in -s'
  return undefined
}

/** Lists the comments of a source text that break a rule. */
export function commentFaults(source: string): Fault[] {
  return commentsOf(source).flatMap(comment => {
    const rule = ruleOfComment(comment)
    return rule === undefined ? [] : [{ line: comment.line, text: comment.text, rule }]
  })
}

/** Lists the titles of tests in a source text that break a rule. */
export function titleFaults(source: string): Fault[] {
  const calls = /(?:\b(?:it|test)(?:\.(?:skipIf|runIf)\([^)]*\))?|^\s*\]?\)?\))\(\s*(['"`])((?:\\.|(?!\1)[^\n])+)\1,/gm
  return [...source.matchAll(calls)].flatMap(match => {
    const text = match[2]!
    const line = source.slice(0, match.index).split('\n').length
    const rule = ruleOfTitle(text)
    return rule === undefined ? [] : [{ line, text, rule }]
  })
}

function ruleOfTitle(text: string): string | undefined {
  if (words.test(text)) return 'a title has no rare word'
  if (/^(?:what|whatever|whether|how|where|who|why) /i.test(text))
    return 'a title begins with a subject, not with a clause'
  if (subjectless.test(text)) return 'a title names its subject'
  return undefined
}
