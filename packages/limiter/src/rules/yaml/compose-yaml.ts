import { Composer, type CST, type Document, Lexer, LineCounter, Parser, type YAMLError } from 'yaml'
import { escapeText } from '../show.ts'

/** Something wrong at an offset of the text. */
export interface Fault {
  readonly offset: number
  readonly message: string
}

export interface Composed {
  readonly lines: LineCounter
  readonly document: Document.Parsed | undefined
  /** The first syntax error: errors after it would be guesses. */
  readonly fault: Fault | undefined
}

// yaml recurses, and a stack that runs out inside a regular expression ends the process
const DEEPEST = 64
const MAX_TOKENS = 2_000_000

/** Parses one YAML document, within bounds of depth, size and time whatever the text. */
export function composeYaml(text: string): Composed {
  const lines = new LineCounter()
  const faults: Fault[] = []
  // yaml compares each key with all others of its map: duplicates are found later, in linear time
  const composer = new Composer({ schema: 'core', resolveKnownTags: false, uniqueKeys: false, logLevel: 'error' })
  const [document, next] = withoutTraces(() =>
    take2(composer.compose(readTokens(text, lines, faults), true, text.length)),
  )
  const error = document?.errors[0] ?? document?.warnings[0]
  if (error) faults.push({ offset: error.pos[0], message: explainError(error) })
  if (next) {
    const message = 'a second document begins here: keep one, and put all rules under its rules:'
    faults.push({ offset: next.range[0], message })
  }
  return { lines, document, fault: faults[0] }
}

function take2<T>(items: Iterable<T>): T[] {
  const taken: T[] = []
  for (const item of items) if (taken.push(item) === 2) break
  return taken
}

function* readTokens(text: string, lines: LineCounter, faults: Fault[]): Generator<CST.Token> {
  const parser = new Parser(lines.addNewLine)
  lines.addNewLine(0)
  let tokens = 0
  for (const lexeme of new Lexer().lex(text)) {
    const { offset } = parser
    for (const token of parser.next(lexeme)) {
      yield token
      if (token.type === 'error') return
    }
    if (parser.stack.length > DEEPEST) {
      faults.push({ offset, message: `this is nested over ${DEEPEST} levels deep: no rule needs that` })
      return
    }
    if (++tokens > MAX_TOKENS) {
      faults.push({ offset, message: `over ${MAX_TOKENS} tokens up to here: use fewer rules` })
      return
    }
  }
  yield* parser.end()
}

/** Runs work without stack traces: a broken document may have a million errors, whose traces would take gigabytes. */
function withoutTraces<T>(work: () => T): T {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return work()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

const remedies: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: 'a tab indents this line: YAML wants spaces there',
  TAG_RESOLVE_FAILED:
    'this tag (a word that begins with !) means nothing here: take it out, or put the value in quotes',
  BAD_ALIAS: 'this alias has no name: put a value that begins with * or & in quotes',
}

function explainError(error: YAMLError): string {
  const [what = ''] = error.message.split('\n')
  return (
    remedies[error.code] ?? `this is not YAML (${escapeText(what)}): check the indentation, quotes and brackets here`
  )
}
