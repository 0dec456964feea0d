const strongTag = /^"[^"]*"$/
const weakTags = /W\/("[^"]*")/g

/** Returns the tag of an answer whose bytes are not the service's own any more: equal in meaning only (RFC 9110, section 8.8.1). */
export function weakTag(tag: string): string {
  return strongTag.test(tag) ? `W/${tag}` : tag
}

/** Tags that a caller knows by compressed answers, as the service that has given them knows them. */
export function tagsOfService(tags: string): string {
  return tags.replace(weakTags, '$1')
}

/** True if a caller names a tag as weak that the service calls strong. */
export function isKnownAsWeak(tag: string, named: string | undefined): boolean {
  return named !== undefined && strongTag.test(tag) && named.includes(`W/${tag}`)
}
