/** Returns the known name that a mistyped one was probably meant to be: at most two letters off, or a prefix. */
export function suggest(word: string, known: readonly string[]): string | undefined {
  const typed = word.toLowerCase()
  if (typed.length < 2 || typed.length > 64) return undefined
  const most = Math.min(2, Math.floor(typed.length / 2))
  let best: string | undefined
  let least = most + 1
  for (const candidate of known) {
    if (isOtherVersion(typed, candidate.toLowerCase())) continue
    const distance = distanceOf(typed, candidate.toLowerCase(), least)
    if (distance < least) [best, least] = [candidate, distance]
  }
  return best ?? known.find(candidate => isBegun(typed, candidate.toLowerCase()))
}

/** True if both name versions: `draft-8` is not a misspelled `draft-7`, since the number was meant. */
function isOtherVersion(typed: string, candidate: string): boolean {
  return typed !== candidate && /\d/.test(typed) && typed.replace(/\d+/g, '') === candidate.replace(/\d+/g, '')
}

function isBegun(typed: string, candidate: string): boolean {
  return candidate.startsWith(typed) || (candidate.length > 2 && typed.startsWith(candidate))
}

/** Counts the letters to change, add, drop or swap with the next; `enough` means that many or more. */
function distanceOf(from: string, to: string, enough: number): number {
  if (Math.abs(from.length - to.length) >= enough) return enough
  const rows = [Array.from({ length: to.length + 1 }, (_, index) => index)]
  for (let i = 1; i <= from.length; i++) {
    const above = rows[i - 1]!
    const row = [i]
    for (let j = 1; j <= to.length; j++) {
      const changed = above[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1)
      const isSwapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      const swapped = isSwapped ? rows[i - 2]![j - 2]! + 1 : changed
      row.push(Math.min(changed, swapped, above[j]! + 1, row[j - 1]! + 1))
    }
    rows.push(row)
  }
  return rows[from.length]![to.length]!
}
