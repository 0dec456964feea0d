import { diff } from '@codemirror/merge'

export interface Merged {
  readonly text: string
  /** In how many places both sides changed the same lines in different ways; there the first side's lines are kept. */
  readonly conflicts: number
}

/** Lines `from` to `to` of the old text became `lines`. */
interface Edit {
  readonly from: number
  readonly to: number
  readonly lines: readonly string[]
}

/** Lines are compared by one character for each different line. */
const FIRST_MARK = 0x100
const MARKS = 0xd000

/** Makes the changes of both sides to one old text, line by line. */
export function mergeTexts(old: string, mine: string, theirs: string): Merged {
  const oldLines = linesOf(old)
  const ours = editsOf(oldLines, linesOf(mine))
  const others = editsOf(oldLines, linesOf(theirs))
  const merged: string[] = []
  let [at, conflicts] = [0, 0]
  while (ours.length > 0 || others.length > 0) {
    const own: Edit[] = []
    const other: Edit[] = []
    // edits that touch each other are one place
    const start = Math.min(ours[0]?.from ?? Number.POSITIVE_INFINITY, others[0]?.from ?? Number.POSITIVE_INFINITY)
    let end = start
    for (let grew = true; grew; ) {
      grew = false
      for (const [from, into] of [[ours, own] as const, [others, other] as const]) {
        while (from[0] !== undefined && from[0].from <= end) {
          const edit = from.shift()!
          into.push(edit)
          end = Math.max(end, edit.to)
          grew = true
        }
      }
    }
    merged.push(...oldLines.slice(at, start))
    const [ownLines, otherLines] = [own, other].map(edits => applied(oldLines, edits, start, end)) as [
      string[],
      string[],
    ]
    if (own.length > 0 && other.length > 0 && ownLines.join('') !== otherLines.join('')) conflicts++
    merged.push(...(own.length > 0 ? ownLines : otherLines))
    at = end
  }
  return { text: [...merged, ...oldLines.slice(at)].join(''), conflicts }
}

function applied(old: readonly string[], edits: readonly Edit[], start: number, end: number): string[] {
  const lines: string[] = []
  let at = start
  for (const { from, to, lines: instead } of edits) {
    lines.push(...old.slice(at, from), ...instead)
    at = to
  }
  return [...lines, ...old.slice(at, end)]
}

function editsOf(before: readonly string[], after: readonly string[]): Edit[] {
  const marks = new Map<string, string>()
  const mark = (lines: readonly string[]) =>
    lines
      .map(line => {
        const known = marks.get(line) ?? String.fromCharCode(FIRST_MARK + marks.size)
        marks.set(line, known)
        return known
      })
      .join('')
  if (new Set([...before, ...after]).size > MARKS) return [{ from: 0, to: before.length, lines: after }]
  return diff(mark(before), mark(after)).map(({ fromA, toA, fromB, toB }) => {
    return { from: fromA, to: toA, lines: after.slice(fromB, toB) }
  })
}

/** Returns the lines of a text, each with its line break. */
function linesOf(text: string): string[] {
  return text.split(/(?<=\n)/)
}
