/**
 * Returns the bill of materials of a package as CycloneDX 1.5: code that is inside its files, by the text of its
 * THIRD-PARTY-LICENSES.txt, and packages that npm installs with it, by the lock file. `npm sbom` knows of the first
 * nothing, and of the second only those that no other workspace needs for development.
 */
export function sbomOf({ name, version, license, dependencies = {} }, lock, licenses) {
  const inside = [...licenses.matchAll(/^(\S+) (\d\S*)\nLicense: (.+)$/gm)].map(([, name, version, license]) => ({
    ...componentOf({ name, version, license, integrity: integrityIn(lock, name, version) }),
    properties: [{ name: 'cdx:npm:package:bundled', value: 'true' }],
  }))
  const own = componentOf({ name, version, license })
  const edges = new Map()
  const installed = new Map()
  const add = (ref, names, from) => {
    const found = Object.keys(names).map(needed => resolve(lock, needed, from))
    edges.set(
      ref,
      found.map(({ component }) => component['bom-ref']),
    )
    for (const { path, entry, component } of found) {
      if (installed.has(component['bom-ref'])) continue
      installed.set(component['bom-ref'], component)
      add(component['bom-ref'], entry.dependencies ?? {}, path)
    }
  }
  add(own['bom-ref'], dependencies, '')
  edges.set(own['bom-ref'], [...edges.get(own['bom-ref']), ...inside.map(component => component['bom-ref'])])
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component: own },
    components: [...inside.filter(component => !installed.has(component['bom-ref'])), ...installed.values()].sort(
      (one, two) => (one['bom-ref'] < two['bom-ref'] ? -1 : 1),
    ),
    dependencies: [...edges].map(([ref, dependsOn]) => ({ ref, dependsOn: [...new Set(dependsOn)].sort() })),
  }
}

function componentOf({ name, version, license, integrity }) {
  const [, algorithm, digest] = /^sha(\d+)-(\S+)$/.exec(integrity ?? '') ?? []
  const hashes = [{ alg: `SHA-${algorithm}`, content: Buffer.from(digest ?? '', 'base64').toString('hex') }]
  return {
    type: 'library',
    'bom-ref': `${name}@${version}`,
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    licenses: [{ expression: license }],
    ...(digest === undefined ? {} : { hashes }),
  }
}

/** Finds the package that a module at a path of the lock file gets by a name, as Node does. */
function resolve({ packages }, name, from) {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const path = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`
    const entry = packages[path]?.link ? packages[packages[path].resolved] : packages[path]
    if (entry !== undefined) return { path, entry, component: componentOf({ ...entry, name }) }
    if (folder === '') throw new Error(`package-lock.json has no ${name}: run npm install`)
  }
}

function integrityIn({ packages }, name, version) {
  const found = Object.entries(packages).find(
    ([path, entry]) => path.endsWith(`node_modules/${name}`) && entry.version === version,
  )
  return found?.[1].integrity
}
