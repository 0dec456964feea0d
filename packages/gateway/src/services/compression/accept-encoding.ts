import type { Encoding } from '../../settings/compression-settings.ts'

/** A quality as RFC 9110 (section 12.4.2) writes it. */
const quality = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/

/**
 * Returns the encoding that a caller likes best of those that are offered; of several that it likes as much, the first. None if it
 * says nothing, accepts none of them, or likes the answer better as it is (RFC 9110, section 12.5.3).
 */
export function chooseEncoding(accepted: string | undefined, offered: readonly Encoding[]): Encoding | undefined {
  if (accepted === undefined) return undefined
  const qualities = qualitiesIn(accepted)
  const others = qualities.get('*')
  let best: Encoding | undefined
  // as it is, an answer is acceptable unless the caller says otherwise, but it is not asked for
  let bestQuality = qualities.get('identity') ?? others ?? 0
  for (const encoding of offered) {
    const liked = qualities.get(encoding) ?? others ?? 0
    if (liked > bestQuality || (liked === bestQuality && liked > 0 && best === undefined)) {
      best = encoding
      bestQuality = liked
    }
  }
  return best
}

function qualitiesIn(accepted: string): Map<string, number> {
  const qualities = new Map<string, number>()
  for (const item of accepted.split(',')) {
    const [name = '', ...parameters] = item.split(';').map(part => part.trim().toLowerCase())
    if (name === '') continue
    const given = parameters.find(parameter => parameter.startsWith('q='))?.slice(2)
    // an invalid quality is no wish for the encoding either
    const value = given === undefined ? 1 : quality.test(given) ? Number(given) : 0
    qualities.set(name === 'x-gzip' ? 'gzip' : name, value)
  }
  return qualities
}
