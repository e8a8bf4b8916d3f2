//! The files of the page, which are part of the binary.

/// A file of the page.
#[derive(Debug)]
pub(crate) struct Asset {
    /// The path of its URL.
    pub path: &'static str,
    pub media_type: &'static str,
    pub bytes: &'static [u8],
}

macro_rules! script {
    ($name:literal) => {
        Asset {
            path: concat!("/m/", $name),
            media_type: "text/javascript; charset=utf-8",
            bytes: include_bytes!(concat!("../page/", $name)),
        }
    };
}

/// The files of the page.
const ASSETS: &[Asset] = &[
    Asset {
        path: "/",
        media_type: "text/html; charset=utf-8",
        bytes: include_bytes!("../page/index.html"),
    },
    Asset {
        path: "/view.css",
        media_type: "text/css; charset=utf-8",
        bytes: include_bytes!("../page/view.css"),
    },
    Asset {
        path: "/icon.svg",
        media_type: "image/svg+xml",
        bytes: include_bytes!("../page/icon.svg"),
    },
    script!("alignment.js"),
    script!("api.js"),
    script!("arrows.js"),
    script!("colours.js"),
    script!("cursor.js"),
    script!("dialogs.js"),
    script!("differences.js"),
    script!("elements.js"),
    script!("filter.js"),
    script!("finder.js"),
    script!("glossary.js"),
    script!("keys.js"),
    script!("lengths.js"),
    script!("links.js"),
    script!("main.js"),
    script!("navigation.js"),
    script!("news.js"),
    script!("page.js"),
    script!("pairs.js"),
    script!("paint.js"),
    script!("pane.js"),
    script!("panels.js"),
    script!("paths.js"),
    script!("pointer.js"),
    script!("rows.js"),
    script!("saving.js"),
    script!("selection.js"),
    script!("span.js"),
    script!("start.js"),
    script!("svg.js"),
    script!("tables.js"),
    script!("text.js"),
    script!("tile_bytes.js"),
    script!("tile_requests.js"),
    script!("timeline.js"),
    script!("way.js"),
    script!("web.js"),
    script!("why.js"),
];

/// The file with the URL path `path`.
pub(crate) fn asset(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
        let files = std::fs::read_dir(folder).unwrap();
        let there: BTreeSet<String> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        let name = |asset: &Asset| match asset.path {
            "/" => "index.html".to_owned(),
            path => path.rsplit('/').next().unwrap_or_default().to_owned(),
        };
        assert_eq!(ASSETS.iter().map(name).collect::<BTreeSet<_>>(), there);
    }

    /// Texts of targets never become markup.
    #[test]
    fn nothing_of_the_page_makes_markup_of_text() {
        for asset in ASSETS {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
            ] {
                assert!(!text.contains(word), "{} has {word}", asset.path);
            }
            if asset.path == "/" {
                assert!(
                    !text.contains("style=") && !text.contains("<style"),
                    "the policy refuses it"
                );
                assert!(!text.contains(" on"), "handlers in markup are refused, too");
            }
        }
    }
}
