/** Splits a command as a POSIX shell would, up to what ends it; expands nothing. Undefined where a quote stays open. */
export function shellWords(text: string): string[] | undefined {
  const words: string[] = []
  let word: string | undefined
  for (let i = 0; i < text.length; i++) {
    const character = text[i]!
    if (character === '\\') {
      const next = text[++i]
      // a line that goes on
      if (next === '\r' && text[i + 1] === '\n') i++
      else if (next !== '\n' && next !== undefined) word = (word ?? '') + next
    } else if (character === "'" || character === '"' || (character === '$' && text[i + 1] === "'")) {
      const isAnsi = character === '$'
      const quoted = readQuoted(text, isAnsi ? i + 2 : i + 1, isAnsi ? 'ansi' : character)
      if (!quoted) return undefined
      word = (word ?? '') + quoted.value
      i = quoted.end
    } else if (/\s/.test(character) || /[|;&<>]/.test(character)) {
      if (word !== undefined) words.push(word)
      word = undefined
      if (/[|;&<>]/.test(character)) return words
    } else word = (word ?? '') + character
  }
  if (word !== undefined) words.push(word)
  return words
}

const ansi: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' }

function readQuoted(text: string, from: number, quote: string): { value: string; end: number } | undefined {
  const closing = quote === '"' ? '"' : "'"
  let value = ''
  for (let i = from; i < text.length; i++) {
    const character = text[i]!
    if (character === closing) return { value, end: i }
    if (character !== '\\' || quote === "'") {
      value += character
      continue
    }
    const next = text[++i] ?? ''
    if (quote === '"') {
      if (next === '\n') continue
      value += '"\\$`'.includes(next) ? next : `\\${next}`
      continue
    }
    const code = /^(?:x([\da-f]{1,2})|u([\da-f]{1,4}))/i.exec(text.slice(i, i + 5))
    if (code) {
      value += String.fromCharCode(Number.parseInt(code[1] ?? code[2]!, 16))
      i += code[0].length - 1
    } else value += ansi[next] ?? next
  }
  return undefined
}
