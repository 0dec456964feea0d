/** What only a regular expression has: anchors, classes, groups of choices, and `.*` for a whole segment. */
const MARKS = /^\/?\^|^~|\\[dwsDWS./]|\[[^\]]*\]|\([^)]*[|?][^)]*\)|\([^)]*\)[+*?]|(?:^|\/)\.[*+](?:\/|\$?$)/

/** Whether a path was written as a regular expression. */
export function isRegularExpression(path: string): boolean {
  return MARKS.test(path)
}

/** The pattern that a regular expression for a path was probably meant to be. */
export function patternOf(expression: string): string {
  const plain = expression
    .replace(/^~\*?\s*/, '')
    .replace(/^\^|\$$/g, '')
    .replace(/^\/(?=\^)/, '')
    .replace(/\(\?:?[^)]*\)|\([^)]*\)/g, '*')
    .replace(/\[[^\]]*\][+*]?|\\[dwDW][+*]?/g, '*')
    .replace(/\\/g, '')
    .replace(/(^|\/)\.[*+](?=\/|$)/g, '$1**')
    .replace(/\.[*+]/g, '*')
  return plain.startsWith('/') ? plain : `/${plain}`
}
