//! This program as a volume of the engine's, for use inside containers.
//!
//! The running binary is packed with its loader and libraries, as the kernel mapped them, into an image of which a volume is
//! made once; nothing is pulled, no second build with other flags is needed, and a static binary is simply packed alone.
//! The loader is called by its path, so that an image's own libraries play no part.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use bollard::Docker;
use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType};
use bollard::query_parameters::{
    CreateContainerOptions, CreateImageOptionsBuilder, RemoveContainerOptionsBuilder, StartContainerOptions,
    WaitContainerOptions,
};
use futures_util::{StreamExt, TryStreamExt};
use redoma_sandbox::driver::DriverError;

use crate::error::{engine, status};

/// Where it is inside.
const FOLDER: &str = "/run/redoma-tool";
/// Where it is in its image.
const IN_IMAGE: &str = "tool";
/// Of nobody's registry.
const REPOSITORY: &str = "localhost/redoma/tool";

/// What is called inside.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    /// The files that it is made of.
    files: Vec<PathBuf>,
    /// Which of them is the program, and which the loader, by their names.
    program: String,
    loader: Option<String>,
    /// Arguments that come first.
    prefix: Vec<String>,
    /// Changes with any of the files.
    version: String,
}

impl Tool {
    /// Asks `program` what it is made of.
    pub(crate) fn of(program: &Path, prefix: &[String]) -> Result<Self, DriverError> {
        let unusable = |why: String| DriverError::Engine {
            why: format!("{} cannot be used inside containers: {why}", program.display()),
            hint: "redoma doctor".into(),
        };
        let output = Command::new(program).args(prefix).arg("objects").output();
        let output = output.map_err(|error| unusable(error.to_string()))?;
        let text = String::from_utf8(output.stdout).map_err(|error| unusable(error.to_string()))?;
        let files: Vec<PathBuf> = text.lines().map(PathBuf::from).collect();
        let real = fs::canonicalize(program).map_err(|error| unusable(error.to_string()))?;
        if !files.contains(&real) {
            return Err(unusable("it does not say what it is made of".into()));
        }
        let loader =
            files.iter().map(|file| name(file)).find(|name| name.starts_with("ld-") && name.contains(".so"));
        let version = version(&files).map_err(|error| unusable(error.to_string()))?;
        Ok(Self { program: name(&real), files, loader, prefix: prefix.to_vec(), version })
    }

    /// The command line inside.
    pub(crate) fn argv(&self, arguments: &[&str]) -> Vec<String> {
        self.argv_below(FOLDER, arguments)
    }

    fn argv_below(&self, folder: &str, arguments: &[&str]) -> Vec<String> {
        let program = format!("{folder}/{}", self.program);
        let mut argv = match &self.loader {
            Some(loader) => {
                vec![format!("{folder}/{loader}"), "--library-path".into(), folder.into(), program]
            }
            None => vec![program],
        };
        argv.extend(self.prefix.iter().cloned());
        argv.extend(arguments.iter().map(|word| (*word).to_owned()));
        argv
    }

    /// The image that it alone is in.
    pub(crate) fn image(&self) -> String {
        format!("{REPOSITORY}:{}", self.version)
    }

    /// Its command line in a container of that image.
    pub(crate) fn argv_in_image(&self, arguments: &[&str]) -> Vec<String> {
        self.argv_below(&format!("/{IN_IMAGE}"), arguments)
    }

    fn volume(&self) -> String {
        format!("redoma-tool-{}", self.version)
    }

    pub(crate) fn mount(&self) -> Mount {
        self.mount_at(FOLDER, true)
    }

    fn mount_at(&self, target: &str, read_only: bool) -> Mount {
        Mount {
            target: Some(target.into()),
            source: Some(self.volume()),
            typ: Some(MountType::VOLUME),
            read_only: Some(read_only),
            ..Mount::default()
        }
    }

    /// Makes image and volume, where they are not there yet.
    pub(crate) async fn install(&self, docker: &Docker) -> Result<(), DriverError> {
        if docker.inspect_image(&self.image()).await.is_err() {
            self.import(docker).await?;
        }
        match docker.inspect_volume(&self.volume()).await {
            Ok(_) => Ok(()),
            Err(error) if status(&error) == Some(404) => self.fill_volume(docker).await,
            Err(error) => Err(engine(error)),
        }
    }

    async fn import(&self, docker: &Docker) -> Result<(), DriverError> {
        let packed = self.pack().map_err(|source| DriverError::Store {
            what: "pack",
            path: PathBuf::from(&self.program),
            source,
        })?;
        let options = CreateImageOptionsBuilder::default().from_src("-").repo(&self.image()).build();
        let body = bollard::body_try_stream(crate::pack::chunks(packed));
        docker.create_image(Some(options), Some(body), None).try_collect::<Vec<_>>().await.map_err(engine)?;
        Ok(())
    }

    fn pack(&self) -> io::Result<File> {
        let mut archive = tar::Builder::new(tempfile::tempfile()?);
        for file in &self.files {
            let mut header = tar::Header::new_gnu();
            let mut open = File::open(file)?;
            header.set_size(open.metadata()?.len());
            header.set_mode(0o555);
            header.set_entry_type(tar::EntryType::Regular);
            archive.append_data(&mut header, Path::new(IN_IMAGE).join(name(file)), &mut open)?;
        }
        let mut file = archive.into_inner()?;
        file.flush()?;
        io::Seek::rewind(&mut file)?;
        Ok(file)
    }

    /// A volume that is new takes what the image has at its place, when a container with it starts.
    async fn fill_volume(&self, docker: &Docker) -> Result<(), DriverError> {
        let body = ContainerCreateBody {
            image: Some(self.image()),
            entrypoint: Some(Vec::new()),
            cmd: Some(self.argv_in_image(&["nothing"])),
            host_config: Some(HostConfig {
                network_mode: Some("none".into()),
                mounts: Some(vec![self.mount_at(&format!("/{IN_IMAGE}"), false)]),
                cap_drop: Some(vec!["ALL".into()]),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let made = docker.create_container(None::<CreateContainerOptions>, body).await.map_err(engine)?;
        let filled = async {
            docker.start_container(&made.id, None::<StartContainerOptions>).await.map_err(engine)?;
            let mut ended = docker.wait_container(&made.id, None::<WaitContainerOptions>);
            ended.next().await.transpose().map_err(engine)
        };
        let filled = filled.await;
        let removal = RemoveContainerOptionsBuilder::default().force(true).build();
        docker.remove_container(&made.id, Some(removal)).await.map_err(engine)?;
        filled.map(drop)
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn version(files: &[PathBuf]) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    for file in files {
        let about = fs::metadata(file)?;
        hasher.update(file.as_os_str().as_encoded_bytes());
        for number in
            [about.len(), about.ino(), about.mtime().unsigned_abs(), about.mtime_nsec().unsigned_abs()]
        {
            hasher.update(&number.to_le_bytes());
        }
    }
    Ok(hasher.finalize().to_hex()[..16].to_owned())
}
