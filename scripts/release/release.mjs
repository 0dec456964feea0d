import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { nextVersion } from './next-version.mjs'
import { releaseChangelog } from './release-changelog.mjs'
import { repositoryUrl, setAddress, setRepository } from './set-repository.mjs'
import { setLockVersion, setVersion } from './set-version.mjs'

/**
 * Makes a release in a repository: checks, moves the changelog and all versions on, builds, packs, checks the tarballs,
 * commits and tags. `repository` is the address that manifests and READMEs of packages name. It publishes nothing and prints the commands that do. With `isDryRun` no file and no tag is written;
 * if a step fails, the files are as they were. `parts` are the steps that need more than git: build, pack, check.
 */
export async function release({ root, step, date, isDryRun, print, parts, folders, repository }) {
  const url = repository === undefined ? undefined : repositoryUrl(repository)
  const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' }).trim()
  const read = path => readFileSync(join(root, path), 'utf8')
  if (git('status', '--porcelain') !== '') throw new Error('the tree has changes: commit or remove them, then release')

  const manifests = folders.map(folder => JSON.parse(read(`${folder}/package.json`)))
  const names = manifests.map(({ name }) => name)
  const version = nextVersion(manifests[0].version, step)
  const tag = `v${version}`
  if (git('tag', '--list', tag) !== '') throw new Error(`the tag ${tag} exists already`)

  const toJson = value => `${JSON.stringify(value, null, 2)}\n`
  const lock = JSON.parse(read('package-lock.json'))
  const changed = new Map([
    ['CHANGELOG.md', releaseChangelog(read('CHANGELOG.md'), version, date)],
    ['package-lock.json', toJson(setLockVersion(lock, version, folders, names))],
    ...folders.map((folder, at) => {
      const manifest = setVersion(manifests[at], version, names)
      return [`${folder}/package.json`, toJson(url === undefined ? manifest : setRepository(manifest, url, folder))]
    }),
    ...(url === undefined
      ? []
      : folders.map(folder => [`${folder}/README.md`, setAddress(read(`${folder}/README.md`), url)])),
  ])
  print(`${manifests[0].version} → ${version}, ${date}: ${[...changed.keys()].join(', ')}`)

  try {
    if (!isDryRun) for (const [path, text] of changed) writeFileSync(join(root, path), text)
    await parts.build()
    const packed = await parts.pack()
    for (const { name, tarball } of packed) await assertPublishable(name, await parts.check(tarball), print)
    if (isDryRun) return print(`dry run: nothing was written; without --dry-run this is committed and tagged ${tag}`)
    git('add', ...changed.keys())
    git('commit', '--message', `release: ${version}`)
    git('tag', '--annotate', tag, '--message', `Diana ${version}`)
    print(`committed and tagged ${tag}; to publish it:`)
    for (const { tarball } of packed) print(`  npm publish ${relative(root, tarball)}`)
    print(`  git push --follow-tags`)
  } catch (error) {
    if (!isDryRun) git('checkout', 'HEAD', '--', ...changed.keys())
    throw error
  }
}

/**
 * Packs and checks the release that a tag names, as the workflow that publishes does; the files of the repository stay as they are.
 * The manifests must name the repository, since npm signs where a package comes from only if they do.
 */
export async function packTagged({ root, tag, print, parts, folders }) {
  for (const folder of folders) {
    const { name, version, repository } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
    if (tag !== `v${version}`) throw new Error(`${name} has version ${version}, which is not that of the tag ${tag}`)
    if (repository === undefined) throw new Error(`${name} names no repository: release with --repository https://…`)
  }
  await parts.build()
  for (const { name, tarball } of await parts.pack()) await assertPublishable(name, await parts.check(tarball), print)
}

async function assertPublishable(name, problems, print) {
  if (problems.length > 0)
    throw new Error(`${name} cannot be published:\n${problems.map(text => `- ${text}`).join('\n')}`)
  print(`${name}: packed; publint, attw and the list of files find nothing wrong`)
}
