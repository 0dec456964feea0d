import { describe, MAX_MISTAKES, type Parsed, ruleAt, type Vocabulary } from './parse.ts'
import type { RuleDocument } from './rule.ts'
import { showPath } from './show.ts'
import { composeYaml } from './yaml/compose-yaml.ts'
import { type RemoteOptions, readDocument, readRemoteDocument } from './yaml/read-document.ts'
import { readJson } from './yaml/read-json.ts'
import { readNodes } from './yaml/read-nodes.ts'

const LARGEST_BYTES = 4 * 1024 * 1024

/** Reads a rule file, YAML or JSON. It never throws: each error is a mistake with its line. */
export function parseText(text: string, file: string, vocabulary: Vocabulary): Parsed {
  return parse(text, file, value => readDocument(value, vocabulary, 1))
}

/** Reads the document of a config center, which carries rules only; everything else comes from the local document. */
export function parseRemote(
  text: string,
  file: string,
  vocabulary: Vocabulary,
  local: RuleDocument,
  options?: RemoteOptions,
): Parsed {
  return parse(text, file, value => readRemoteDocument(value, vocabulary, local, options))
}

function parse(text: string, file: string, read: (value: unknown) => ReturnType<typeof readDocument>): Parsed {
  if (Buffer.byteLength(text) > LARGEST_BYTES) {
    const message = 'the document is larger than 4 MiB: use fewer rules, or shorter ones'
    return { mistakes: [{ file, line: 1, column: 1, message }] }
  }
  const body = text.replace(/^\uFEFF/, '')
  const json = readJson(body)
  const quick = json === undefined ? undefined : read(json).document
  if (quick) return { document: quick, mistakes: [] }
  const { lines, document, fault } = composeYaml(body)
  const place = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return { file, line, column: col }
  }
  if (fault || !document?.contents) {
    const message = 'no rules: the document is empty; write rules: and under it a list of rules, each with id and limit'
    return { mistakes: [{ ...place(fault?.offset ?? 0), message: fault?.message ?? message }] }
  }
  const nodes = readNodes(document)
  const { document: rules, problems } = nodes.isWhole ? read(nodes.value) : { problems: [] }
  if (rules && nodes.faults.length === 0) return { document: rules, mistakes: [] }
  const faulty = new Set(nodes.faults.map(({ offset }) => offset))
  const faults = nodes.faults.map(({ offset, message }) => {
    return { offset, message, ...ruleAt(['rules', nodes.itemAt('rules', offset)], nodes.value) }
  })
  const others = problems
    .map(problem => ({ ...problem, offset: nodes.offsetOf(problem.path, problem.atName) }))
    // a value that could not be read was left empty, and is not reported again for being empty
    .filter(({ offset }) => !faulty.has(offset))
    .map(({ offset, path, what }) => ({ offset, ...describe(what, shortPath(path)), ...ruleAt(path, nodes.value) }))
  const mistakes = [...faults, ...others].sort((a, b) => a.offset - b.offset).slice(0, MAX_MISTAKES)
  return { mistakes: mistakes.map(({ offset, ...mistake }) => ({ ...place(offset), ...mistake })) }
}

/** Returns a path within its rule: `match.path[1]`. */
function shortPath(path: readonly PropertyKey[]): string {
  return showPath(path[0] === 'rules' && path.length > 2 ? path.slice(2) : path) || 'the document'
}
