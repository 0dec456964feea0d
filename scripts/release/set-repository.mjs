/** A package.json that says where its source is: in a folder of the repository at this URL. */
export function setRepository(manifest, url, folder) {
  return {
    ...manifest,
    homepage: `${url}#readme`,
    bugs: `${url}/issues`,
    repository: { type: 'git', url: `git+${url}.git`, directory: folder },
  }
}

const LINE = /^Documentation, examples and source: .*\n\n/m

/** The README of a package with the address of the documentation before its last line, once. */
export function setAddress(readme, url) {
  const text = readme.replace(LINE, '')
  return text.replace(/^MIT licensed\.$/m, `Documentation, examples and source: ${url}\n\nMIT licensed.`)
}

/** The address as it is written into packages; throws if it is none that all of them can have. */
export function repositoryUrl(given) {
  const url = given.replace(/(?:\.git)?\/*$/, '')
  if (/^https:\/\/[^\s/]+\/\S+$/.test(url) && URL.canParse(url)) return url
  throw new Error(`--repository is ${given}: give an address such as https://host/owner/name`)
}
